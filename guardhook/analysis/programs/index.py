"""Which module knows a program. The modules are loaded when one of their programs is called."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from guardhook.analysis.call import Call
    from guardhook.analysis.values import Val

    Handler = Callable[[Call], Val]

_NAMES = (
    ("builtins", "ztcp : . [ alias builtin cd chdir command declare dirs echo eval exec exit export false getopts hash let local logout mapfile popd printenv printf pushd pwd read readarray readonly return set setopt shift shopt source test trap true type typeset ulimit umask unalias unset wait which whereis where whence"),
    ("shells", "ash bash cmd csh dash elvish fish ksh ksh93 mksh nu pwsh powershell rbash rc sh tcsh xonsh yash zsh osh oksh"),
    ("wrappers", "wsl ip arch arm busybox catchsegv caffeinate chpst chroot chrt cgexec choom chronic cpulimit dbus-run-session dbus-launch doas dotenv dumb-init env envdir eatmydata exec-with expect fakeroot faketime firejail bwrap flock gdb gosu gtimeout heaptrack hyperfine ionice ld.so ld-linux-x86-64.so.2 linux32 linux64 ltrace nice nocorrect noglob nohup nsenter numactl parallel perf pkexec prlimit proot proxychains proxychains4 pseudo retry rlwrap run-parts runuser rush script sem setarch setpriv setsid setuidgid sg softlimit ssh-agent start-stop-daemon stdbuf strace su su-exec sudo sudoedit systemd-inhibit systemd-run taskset time timeout tini torify torsocks toybox tsocks ts unbuffer unshare valgrind watch watchexec entr xargs xvfb-run -- x86_64 with-contenv s6-setuidgid aws-vault doppler infisical chamber sops dotenvx poetry pipenv uv rye hatch pdm conda mamba micromamba bundle npx uvx bunx pnpx dlx npm pnpm yarn nix-shell nix direnv mise asdf pyenv rbenv nvm volta fnm make-tty rtk concurrently cross-env dotenv-cli nodemon"),
    ("files", "chattr chflags chgrp chmod chown cp cpio dd ditto fallocate gcp gmv grm install ln link mkdir mktemp mv rename rm rmdir safe-rm setfacl shred split sponge srm tee touch trash trash-put truncate unlink wipe rimraf del-cli gio mv-f xattr mkfifo mknod csplit logrotate perl-rename prename rdfind fdupes dos2unix rd del erase move copy xcopy robocopy"),
    ("find", "find fd fdfind"),
    ("archives", "tar bsdtar gtar zip unzip 7z 7za gzip gunzip bzip2 xz zstd rsync"),
    ("editors", "sed patch apply_patch ed ex vi vim nvim emacs nano"),
    ("disks", "blkdiscard blkdeactivate cfdisk cryptsetup diskutil fdisk gdisk hdparm lvm lvremove vgremove pvremove lvreduce mdadm mkfs mkfs.btrfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.f2fs mkfs.fat mkfs.msdos mkfs.ntfs mkfs.vfat mkfs.xfs mkswap mke2fs newfs nvme parted sfdisk sgdisk swapoff umount wipefs zfs zpool btrfs e2fsck fsck format losetup mount tune2fs badblocks dmsetup xfs_repair resize2fs sg_format ceph rbd gluster hdiutil asr newfs_apfs"),
    ("text", "ps ag awk gawk mawk nawk base32 base64 gbase64 basenc bat batcat cat tac colrm column comm cut diff colordiff cmp delta egrep expand fgrep fmt fold glow grep head hexdump hd iconv jq yq jless join less look more most nl od openssl paste pr rev rg ripgrep sdiff sort gsort strings tail tr ts-node-text uniq unexpand uudecode uuencode wc xxd xmllint zcat zgrep zless bzcat xzcat zstdcat gpg gpg2 age view ccat pygmentize tail-f grip hexyl basename dirname seq expr bc dc numfmt yes date uname hostname whoami id logname groups realpath readlink md5sum sha1sum sha256sum sha512sum shasum cksum sum b2sum md5 factor shuf man file stat ls ll la dir vdir exa eza lsd tree du df strings-all envsubst getconf git-show-text printenv-text pbpaste pbcopy xclip xsel wl-copy wl-paste clip lp lpr csvcut mlr fx gron dasel recode enconv crunch rot13 caesar zipinfo pdftotext"),
    ("network", "curl wget wget2 axel aria2c http https httpie xh curlie fetch lynx w3m links elinks nc ncat netcat nc.openbsd nc.traditional socat telnet ftp lftp sftp scp tftp ssh pssh parallel-ssh pdsh dsh clush autossh mosh sshpass dig nslookup host drill ping ping6 traceroute openvpn wg-quick cloudflared ngrok localtunnel lt bore frpc chisel nmap masscan whois rsh rlogin rexec xfreerdp smbclient ldapsearch grpcurl websocat wscat tailscale bitsadmin certutil iwr irm ssh-copy-id transfer ntfy"),
    ("transfer", "mail mailx mutt sendmail swaks msmtp rclone croc wormhole magic-wormhole gsutil s3cmd s5cmd mc"),
    ("interpreters", "bun deno node nodejs perl php python python2 python3 python3.8 python3.9 python3.10 python3.11 python3.12 python3.13 python3.14 pypy pypy3 ruby jruby irb tsx ts-node lua luajit tclsh wish expect-script osascript groovy scala R Rscript julia elixir erl ghci raku ipython ipython3 bpython jshell clojure guile racket sbcl swipl gawk-script bun-script cscript wscript mshta rundll32 octave crystal dart php8 php7 php-cli pythonw py perl5 nodejs18 vbscript"),
    ("gitcmd", "git git-clean git-reset git-push"),
    ("forges", "hub gh glab git-filter-repo bfg jj svn hg lazygit tig git-lfs sl p4 repo"),
    ("packages", "apt-key add-apt-repository apt apt-get aptitude dpkg rpm dnf yum zypper pacman yay paru apk brew port snap flatpak pip pip3 pipx easy_install twine flit gem cargo go composer nuget dotnet mvn gradle gradlew mvnw lerna changeset semantic-release vsce ovsx np release-it cpan cpanm luarocks helm-push mix rebar3 hex conan vcpkg winget choco scoop emerge nix-env nix-collect-garbage guix pkg pkg_add cabal stack goreleaser jsr docker-push deno-publish tessl make just task go-task rake invoke ant bazel cmake ninja xcodebuild fastlane pod swift"),
    ("cloud", "aws aws2 gcloud bq az azcopy doctl heroku flyctl fly vercel netlify firebase railway render wrangler linode-cli hcloud scw ibmcloud oci eksctl kops terraform tofu terragrunt pulumi cdk cdktf sls serverless sam copilot chalice eb ecs-cli ansible ansible-playbook ansible-vault vagrant packer nomad consul vault boto aliyun tccli openstack s4cmd supabase neonctl planetscale pscale turso upstash crossplane cdk8s okta auth0 stripe cloudflare flarectl terraformer amplify apprunner kubeadm sops-cloud civo vultr-cli ionosctl"),
    ("containers", "docker podman nerdctl docker-compose podman-compose buildah skopeo ctr crictl lxc lxc-attach lxc-destroy incus kubectl oc k9s helm helmfile kustomize kind k3d minikube k3s kubectx kubens argocd flux istioctl velero stern systemd-nspawn machinectl vboxmanage virsh qemu-img multipass colima limactl orb rancher skaffold tilt devspace microk8s talosctl docker-machine crane oras"),
    ("databases", "pg_dropcluster psql mysql mariadb mysqladmin mariadb-admin sqlite3 sqlite sqlcmd sqlplus mongosh mongo mongodump mongorestore redis-cli valkey-cli keydb-cli pg_dump pg_dumpall pg_restore dropdb createdb dropuser mysqldump clickhouse-client clickhouse cqlsh influx cockroach duckdb etcdctl snowsql bcp prisma alembic flyway liquibase knex sequelize sequelize-cli typeorm drizzle-kit rails rake-db php-artisan artisan manage.py dbmate goose migrate atlas neo4j-admin cypher-shell arangosh couchdb rethinkdb supabase-db usql mycli pgcli litecli iredis osm2pgsql kafka-topics kafka-topics.sh rabbitmqctl rabbitmqadmin elasticdump curator consul-kv zkCli.sh mongoimport hasura sqitch"),
    ("system", "adduser useradd usermod userdel groupadd groupmod groupdel passwd chpasswd visudo vipw chsh gpasswd setcap getcap capsh sysctl modprobe insmod rmmod kextload dscl dseditgroup launchctl systemctl service rc-service rc-update update-rc.d chkconfig crontab at batch loginctl shutdown reboot halt poweroff init telinit kill pkill killall killall5 skill snice xkill fuser taskkill pm2 supervisorctl iptables ip6tables nft ufw firewall-cmd pfctl route ifconfig nmcli networksetup setenforce semanage apparmor_parser aa-disable auditctl journalctl history fc csrutil spctl tccutil security codesign defaults nvram bless pmset grub-install update-grub efibootmgr debugfs swapon ldconfig update-alternatives dpkg-reconfigure timedatectl hostnamectl hwclock schtasks reg net sc icacls takeown vssadmin wevtutil bcdedit wmic cipher attrib stop-process screen tmux zellij byobu disown bg fg jobs nohup-sys osqueryi logger wall write talk dmesg chage faillock pwconv kexec crash sysrq-trigger ssh-keygen ssh-add keytool gpgconf gpg-connect-agent loadkeys setterm systemd-analyze busctl dbus-send gdbus qdbus xdotool ydotool osacompile automator plutil PlistBuddy tmutil softwareupdate installer pkgutil kmod depmod dracut mkinitcpio update-initramfs auditpol netsh set-executionpolicy add-mppreference set-mppreference inotifywait mktemp-sys tcpdump tshark wireshark ettercap arpspoof hping3 hydra john hashcat aircrack-ng msfconsole msfvenom sqlmap nikto mimikatz responder gobuster"),
    ("credentials", "op pass gopass bw lpass secret-tool keyring bitwarden chezmoi doppler infisical chamber"),
    ("agents", "claude codex gemini cursor cursor-agent copilot qwen aider goose-agent cline crush opencode droid auggie kiro kiro-cli vibe amp guardhook guardhook-hook agy devin windsurf grok hermes"),
)  # fmt: skip

AREAS: dict[str, str] = {name: area for area, names in _NAMES for name in names.split()}

# What a glob or a name with a hole in program position is compared with.
DANGEROUS = (
    "rm", "dd", "shred", "mkfs", "sh", "bash", "zsh", "python3", "python", "perl", "ruby", "node", "sudo", "chmod", "chown", "mv", "cp", "tee", "git", "curl",
    "wget", "nc", "find", "xargs", "env", "eval", "kill", "pkill", "cat", "ln", "truncate", "unlink", "rmdir", "rsync", "ssh", "scp", "docker", "kubectl",
    "terraform", "aws", "crontab", "systemctl", "wipefs", "php", "dash", "busybox",
)  # fmt: skip

_LANGUAGES = {
    "python": ("python", "pypy", "ipython", "bpython"),
    "node": ("node", "deno", "bun", "tsx", "ts-node"),
    "perl": ("perl",),
    "ruby": ("ruby", "jruby", "irb"),
    "php": ("php",),
    "awk": ("awk", "gawk", "mawk", "nawk"),
    "lua": ("lua", "luajit", "texlua"),
    "sh": ("sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "rbash", "fish"),
    "osascript": ("osascript",),
    "sed": ("sed",),
    "make": ("make",),
    "tcl": ("tclsh", "expect", "wish"),
    "r": ("Rscript", "R"),
    "julia": ("julia",),
    "groovy": ("groovy",),
    "elixir": ("elixir",),
}


def language(name: str) -> str:
    """The language of an interpreter by its name (`python3.11` -> `python`); "" when it is none."""
    stripped = name.rstrip("0123456789.-")
    for tongue, names in _LANGUAGES.items():
        if name in names or stripped in names:
            return tongue
    return ""


def find(name: str) -> Handler | None:
    """The handler of a program, None when no module knows it."""
    area = AREAS.get(name)
    if area is None:
        if name.startswith(("python", "pypy", "php", "perl", "ruby", "lua", "node")) and language(name):
            area = "interpreters"
        elif name.startswith(("mkfs.", "fsck.", "newfs_")):
            area = "disks"
        elif name.startswith("git-"):
            area = "gitcmd"
        else:
            return None
    return _load(area).get(name) or _load(area).get("")


def handler(area: str, name: str) -> Handler:
    """The handler that an area has for a name, its general one when it has no special one."""
    table = _load(area)
    return table.get(name) or table[""]


_loaded: dict[str, dict[str, Handler]] = {}


def _load(area: str) -> dict[str, Handler]:
    found = _loaded.get(area)
    if found is not None:
        return found
    # Written out, so that whoever packs the program sees what is imported.
    if area == "builtins":
        from guardhook.analysis.programs.builtins import HANDLERS
    elif area == "shells":
        from guardhook.analysis.programs.shells import HANDLERS
    elif area == "wrappers":
        from guardhook.analysis.programs.wrappers import HANDLERS
    elif area == "files":
        from guardhook.analysis.programs.files import HANDLERS
    elif area == "transfer":
        from guardhook.analysis.programs.transfer import HANDLERS
    elif area == "find":
        from guardhook.analysis.programs.find import HANDLERS
    elif area == "archives":
        from guardhook.analysis.programs.archives import HANDLERS
    elif area == "editors":
        from guardhook.analysis.programs.editors import HANDLERS
    elif area == "forges":
        from guardhook.analysis.programs.forges import HANDLERS
    elif area == "credentials":
        from guardhook.analysis.programs.credentials import HANDLERS
    elif area == "disks":
        from guardhook.analysis.programs.disks import HANDLERS
    elif area == "text":
        from guardhook.analysis.programs.text import HANDLERS
    elif area == "network":
        from guardhook.analysis.programs.network import HANDLERS
    elif area == "interpreters":
        from guardhook.analysis.programs.interpreters import HANDLERS
    elif area == "gitcmd":
        from guardhook.analysis.programs.gitcmd import HANDLERS
    elif area == "packages":
        from guardhook.analysis.programs.packages import HANDLERS
    elif area == "cloud":
        from guardhook.analysis.programs.cloud import HANDLERS
    elif area == "containers":
        from guardhook.analysis.programs.containers import HANDLERS
    elif area == "databases":
        from guardhook.analysis.programs.databases import HANDLERS
    elif area == "system":
        from guardhook.analysis.programs.system import HANDLERS
    else:
        from guardhook.analysis.programs.agents import HANDLERS
    _loaded[area] = HANDLERS
    return HANDLERS
