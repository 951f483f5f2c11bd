"""Paths: where a word leads, and which classes of places it can reach."""

from __future__ import annotations

from guardhook.analysis import guardpaths
from guardhook.analysis.glob import matches
from guardhook.analysis.nodes import CLASS, HOLE, QUERY, STAR
from guardhook.analysis.values import MARKS, NONE, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.facts import Facts

_SYSTEM = (
    "bin", "boot", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root", "run", "sbin", "srv", "sys", "usr", "var", "dev", "home", "Users",
    "System", "Library", "Applications", "private", "cores", "Volumes", "mnt", "media", "nix", "snap", "Windows", "Program Files",
    "Program Files (x86)", "ProgramData", "boot.ini",
)  # fmt: skip
# Folders of the list above whose children are somebody's data rather than the system's.
_HOLDERS = frozenset(("home", "Users", "mnt", "media", "Volumes", "srv", "opt", "snap"))
_TMP = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/var/folders", "/private/var/folders", "/dev/shm")
_HARMLESS_DEVICES = frozenset((
    "null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr", "console", "ptmx",
))  # fmt: skip

SECRET_NAMES = frozenset((
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "identity", ".netrc", "_netrc", ".pgpass", ".git-credentials",
    ".pypirc", ".npmrc", ".htpasswd", "credentials.json", "service-account.json", "serviceaccount.json", "service_account.json", "wallet.dat",
    "secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", ".vault-token", "vault-token", "shadow", "gshadow", "master.passwd", "sudoers",
    "login data", "cookies.sqlite", "logins.json", "key4.db", "key3.db", "login.keychain-db", "login.keychain", "system.keychain", ".dockercfg",
    "application_default_credentials.json", "access_tokens.db", "credentials.db", "kubeconfig", "kubeconfig.yaml", "kubeconfig.yml", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto",
    "terraform.tfvars", "secring.gpg", "auth.json", "oauth_creds.json", ".credentials.json", "hosts.yml", "ssh_host_rsa_key",
    "ssh_host_ed25519_key", "ssh_host_ecdsa_key", "rails_master.key", "master.key", ".env",
))  # fmt: skip
# Names that are secret only below one of these folders.
_SECRET_ONLY_BELOW = {
    "hosts.yml": ("gh",), "auth.json": (".codex", ".docker", "opencode", "containers", "composer"), "identity": (".ssh",), "sudoers": (),
    "cookies.sqlite": ("firefox", ".mozilla", "Firefox", "Profiles"), "auth.json.": (),
}  # fmt: skip
SECRET_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".asc.key", "_rsa", "_ed25519", "_ecdsa", ".tfvars.secret")  # fmt: skip
_NOT_SECRET_ENDINGS = (".pub", ".example", ".sample", ".template", ".dist", ".tmpl", ".md", ".crt", ".cer", ".csr", ".default", ".defaults", "-example", "-sample", ".test.ts", ".d.ts")  # fmt: skip
# (folder, file below it): the file may be "" for the folder as a whole. Compared with the end of the path.
SECRET_PLACES = (
    (".aws", "credentials"), (".kube", "config"), (".docker", "config.json"), (".config/gcloud", ""), (".gnupg", ""), (".config/gh", "hosts.yml"),
    (".azure", "accessTokens.json"), (".azure", "msal_token_cache.json"), (".password-store", ""), (".cargo", "credentials.toml"),
    (".cargo", "credentials"), (".gem", "credentials"), (".terraform.d", "credentials.tfrc.json"), (".config/rclone", "rclone.conf"),
    (".config/doctl", "config.yaml"), ("Library/Keychains", ""), (".local/share/keyrings", ""), (".electrum", "wallets"), (".bitcoin", "wallet.dat"),
    (".ethereum", "keystore"), (".config/solana", "id.json"), (".config/op", ""), (".1password", ""), (".vault-token", ""), (".aws/sso", ""),
    (".aws/cli", "cache"), (".config/hub", ""), (".oci", "oci_api_key.pem"), (".m2", "settings-security.xml"), (".config/google-chrome", ""),
    (".config/chromium", ""), (".mozilla/firefox", ""), ("Application Support/Google/Chrome", ""), ("Application Support/Firefox", ""),
    (".config/BraveSoftware", ""), ("/etc/ssl", "private"), ("/run/secrets", ""), ("/var/run/secrets", ""), (".secrets", ""), (".netlify", "config.json"),
    (".config/configstore", "firebase-tools.json"), (".fly", "config.yml"), (".heroku", "credentials"), (".ssh", "keys"),
)  # fmt: skip
# Folders that hold keys beside harmless files: only a glob, a hole or the folder itself (copied, packed) counts.
_SECRET_FOLDERS = (".ssh", ".aws", ".kube", ".gnupg", ".docker", ".azure", "gcloud")
_SSH_PUBLIC = frozenset(
    ("known_hosts", "config", "authorized_keys", "known_hosts.old", "environment", "rc", "config.d", "allowed_signers")
)

_REGENERABLE = frozenset((
    "node_modules", "dist", "build", "target", "out", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".venv", "venv",
    ".next", ".nuxt", ".turbo", ".parcel-cache", ".cache", "coverage", "htmlcov", ".coverage", ".gradle", ".eggs", "vendor", "tmp", "temp", "log", "logs",
    ".nyc_output", ".svelte-kit", ".angular", ".terraform", "deriveddata", "pods", "bower_components", ".hypothesis", ".serverless", ".vercel",
    "cmake-build-debug", "cmake-build-release", "obj", "bin", "_build", ".dart_tool", ".output", ".vite", ".yarn", ".pnpm-store", "storybook-static",
    "test-results", "playwright-report", ".sass-cache", ".ipynb_checkpoints", "site", "public", "artifacts", "caches",
))  # fmt: skip
_HOME_CACHES = (
    ".cache", ".npm", ".yarn/cache", ".pnpm-store", ".cargo/registry", ".cargo/git", ".gradle/caches", ".m2/repository", "Library/Caches", "go/pkg",
    "Library/Developer/Xcode/DerivedData", ".nuget/packages", ".local/share/Trash", ".Trash", ".local/share/pnpm/store", ".bun/install/cache", ".rustup/tmp",
    ".composer/cache", ".ivy2/cache", ".pip/cache", ".cocoapods", ".expo", ".local/state",
)  # fmt: skip
_CI = (".github/workflows", ".gitlab-ci.yml", ".circleci", ".husky", "Jenkinsfile", ".pre-commit-config.yaml", ".travis.yml", "azure-pipelines.yml", ".buildkite", ".drone.yml", "bitbucket-pipelines.yml", ".github/actions", "lefthook.yml", ".ci")  # fmt: skip


class Place:
    """Where a path leads. flags: see guardhook.analysis.vocabulary, section paths."""

    __slots__ = ("classes", "flags", "path", "text")

    def __init__(self, text: str, classes: frozenset[str], flags: frozenset[str]) -> None:
        self.text = text  # normalised, with marks
        self.path = plain(text)
        self.classes = classes
        self.flags = flags


def normalise(text: str) -> str:
    """Dots, double slashes and `..` removed by name, as far as that is possible without looking."""
    absolute = text.startswith("/")
    out: list[str] = []
    for part in text.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if out and out[-1] != "..":
                if MARKS.isdisjoint(out[-1]) or out[-1] != HOLE:
                    out.pop()
                    continue
            elif absolute and not out:
                continue
            out.append(part)
            continue
        out.append(part)
    return ("/" if absolute else "") + "/".join(out)


_DRIVE = (":/", ":\\")


def locate(text: str, cwd: str | None, facts: Facts) -> Place:
    """The place that a path word leads to from cwd (None: not known)."""
    if text.startswith("file://"):
        text = text[7:]
    if len(text) > 4096:
        text = text[:4096]
    if "~" in text and text.startswith("~"):
        # A tilde that no shell expanded, in a place where the program itself may (Python's expanduser, configuration).
        text = facts.home + text[1:] if text in ("~",) or text.startswith("~/") else text
    if text.startswith(HOLE):
        return _unknown_start(text, facts)
    if text[1:3] in _DRIVE and text[0].isalpha():
        text = text[2:].replace("\\", "/")
    if not text.startswith("/"):
        if cwd is None:
            return _unknown_start(HOLE + "/" + text, facts, artificial=True)
        text = cwd + "/" + text
    flags = frozenset(("unknown",)) if HOLE in text else NONE
    if STAR in text or QUERY in text or CLASS in text:
        flags |= frozenset(("glob",))
    if "/proc/" in text:
        text = _through_proc(text, cwd)
    text = normalise(text)
    classes, more = classify(text, facts)
    if cwd is not None:
        about = _about_cwd(text, cwd)
        # All that lies in a folder of build products is still nothing but build products.
        # Build output that isn't there: the `cd` into it fails, and what follows a `;` meets the folder before it.
        spared = "regenerable" in more and "above-cwd" not in about and about and facts.is_dir(cwd) is not False
        more |= NONE if spared else about
    return Place(text, classes, flags | more)


def _through_proc(text: str, cwd: str | None) -> str:
    """An absolute path without the detour by a process's root or working folder (`/proc/self/root/etc`). Before `..` is taken out: the root's is itself."""
    for _ in range(8):
        parts = [part for part in text.split("/") if part not in ("", ".")]
        if len(parts) < 3 or parts[0] != "proc":
            return text
        own = parts[1] in ("self", "thread-self")
        if parts[2] == "root" and (own or parts[1].isdigit() or parts[1] in (STAR, HOLE)):
            rest = parts[3:]
            while rest[:1] == [".."]:
                rest = rest[1:]
            text = "/" + "/".join(rest)
        elif parts[2] == "cwd" and own and cwd is not None:
            text = "/".join((cwd, *parts[3:]))
        else:
            return text
    return text


def _unknown_start(text: str, facts: Facts, artificial: bool = False) -> Place:
    rest = text.lstrip(HOLE)
    flags = {"unknown"}
    classes: frozenset[str] = NONE
    if not artificial and rest and not rest.strip("/.*" + STAR + QUERY):
        # `$X/` and `$X/*`: with X unset this is the root.
        flags.add("unset-root")
        classes = frozenset(("root",))
    elif artificial and not rest.strip("/." + STAR + QUERY):
        flags.add("whole-cwd")
    tail = normalise(rest) if rest.startswith("/") else rest
    if _secret(tail, facts):
        classes |= frozenset(("secret",))
    guard = guardpaths.guard_place(tail, facts, HOLE)
    if guard:
        classes |= frozenset(("guard",))
        flags.add(guard)
    if tail.endswith("/.git") or "/.git/" in tail or tail == ".git":
        classes |= frozenset(("project_critical",))
        flags.add("git-dir")
    last = tail.rpartition("/")[2].lower()
    if last in _REGENERABLE or _regenerable(tail):
        flags.add("regenerable")
    if STAR in text:
        flags.add("glob")
    return Place(text, classes, frozenset(flags))


def _about_cwd(text: str, cwd: str) -> frozenset[str]:
    """Whether the place is the current folder as a whole, or holds it."""
    base = text.rstrip("/")
    while base.endswith(("/" + STAR, "/." + STAR, "/" + STAR + "." + STAR, "/" + STAR + STAR)):
        base = base.rpartition("/")[0]
    here = cwd.rstrip("/")
    if base == here or here.startswith(base + "/"):
        return frozenset(("whole-cwd",)) if base == here else frozenset(("whole-cwd", "above-cwd"))
    return NONE


def classify(path: str, facts: Facts) -> tuple[frozenset[str], frozenset[str]]:
    """Classes and flags of an absolute, normalised path that may hold marks."""
    classes: set[str] = set()
    flags: set[str] = set()
    literal, pattern = _literal_prefix(path)
    # `x/*` reaches all of x: where it lies counts as x itself.
    whole = pattern is not None and _reaches_all(pattern)
    base = literal if whole or pattern is None else path
    deep = pattern is not None and "/" in pattern
    if pattern is None or whole:
        _base_classes(base, facts, classes, flags, whole and not deep)
    if pattern is not None:
        _pattern_classes(literal, pattern, facts, classes, flags, whole)
    if _secret(path, facts):
        classes.add("secret")
    guard = guardpaths.guard_place(path, facts, STAR)
    if guard:
        classes.add("guard")
        flags.add(guard)
    if not classes & {"root", "system", "home", "guard"} and _regenerable(path):
        flags.add("regenerable")
    if path.endswith(("_history", ".lesshst", ".viminfo")) and "/." in path:
        flags.add("history")
    return frozenset(classes), frozenset(flags)


def _literal_prefix(path: str) -> tuple[str, str | None]:
    """The folders before the first component with a mark, and the rest (None when there are no marks)."""
    if MARKS.isdisjoint(path):
        return path, None
    first = min(i for i in (path.find(m) for m in MARKS) if i >= 0)
    cut = path.rfind("/", 0, first)
    return path[:cut] or "/", path[cut + 1 :]


def _reaches_all(pattern: str) -> bool:
    """Whether a pattern's components can each match any name (`*`, `*/*`, `.*`, `**`)."""
    return all(part and not part.strip(STAR + QUERY + ".") and STAR in part for part in pattern.split("/"))


def _base_classes(path: str, facts: Facts, classes: set[str], flags: set[str], contents: bool) -> None:
    if path == "/":
        classes.add("root")
        classes.add("outside")
        return
    home = facts.home
    project = facts.project_root
    if project is not None and (project == home or project == "/" or home.startswith(project + "/")):
        project = None
    if path.startswith("/dev/") and not path.startswith("/dev/shm"):
        name = path[5:]
        if name.split("/")[0] not in _HARMLESS_DEVICES and not name.startswith(("fd/", "tty", "pts", "tcp/", "udp/")):
            classes.add("device")
            classes.add("outside")
        return
    if project is not None and (path == project or path.startswith(project + "/")):
        classes.add("project")
        if path == project:
            flags.add("whole-project")
        _critical(path[len(project) + 1 :], classes, flags, contents)
        return
    if project is not None and project.startswith(path + "/"):
        flags.add("whole-project")
        flags.add("above-project")
    if path == home or home.startswith(path + "/"):
        classes.add("home")
        classes.add("outside")
        if path != home:
            classes.add("system")
        return
    if path.startswith(home + "/"):
        classes.add("home_child")
        classes.add("outside")
        rest = path[len(home) + 1 :]
        if any(rest == cache or rest.startswith(cache + "/") for cache in _HOME_CACHES):
            flags.add("regenerable")
        if "/" not in rest:
            flags.add("home-top")
        if rest == ".git" or rest.endswith("/.git"):
            flags.add("git-dir")
        return
    for tmp in _TMP:
        if path == tmp or path.startswith(tmp + "/"):
            classes.add("tmp")
            if path == tmp and not contents:
                flags.add("whole-tmp")
            if path.endswith("/.git") or "/.git/" in path:
                flags.add("git-dir")
            return
    classes.add("outside")
    first, _, rest = path[1:].partition("/")
    if first in ("c", "C") or (first == "mnt" and rest in ("c", "d")):
        classes.add("system")
    if first not in _SYSTEM:
        if "/" not in path[1:]:
            flags.add("top-level")
        return
    if path == "/root" or path.startswith("/root/"):
        classes.add("home" if path == "/root" else "home_child")
        if path == "/root":
            classes.add("system")
    elif first in ("home", "Users") and rest:
        classes.add("home" if "/" not in rest else "home_child")
    elif first in _HOLDERS and rest:
        if first in ("srv", "opt"):
            classes.add("system")
    else:
        classes.add("system")


def _critical(rest: str, classes: set[str], flags: set[str], contents: bool) -> None:
    """Parts of a project whose loss or change reaches beyond its files."""
    first = rest.split("/", 1)[0]
    if first == ".git" or "/.git/" in rest or rest.endswith("/.git"):
        classes.add("project_critical")
        flags.add("git-dir")
        if "/hooks" in rest:
            flags.add("git-hooks")
        return
    for place in _CI:
        if rest == place or rest.startswith(place + "/") or (rest and place.startswith(rest + "/")):
            classes.add("project_critical")
            flags.add("ci")
            if place == ".husky":
                flags.add("git-hooks")
            return


def _pattern_classes(literal: str, pattern: str, facts: Facts, classes: set[str], flags: set[str], whole: bool) -> None:
    first = pattern.split("/", 1)[0]
    if not whole:
        # A name below the folder: classified by the folder, with a name that is nothing special.
        if literal == "/":
            hit = [name for name in _SYSTEM if matches(first, name)]
            if hit:
                classes.add("system")
                classes.add("outside")
                if "home" in hit:
                    classes.add("home")
            elif HOLE in first:
                # `/$x`: the root itself when x is empty.
                classes.add("root")
                classes.add("outside")
            else:
                classes.add("outside")
        else:
            sample = literal.rstrip("/") + "/" + (first.replace(HOLE, "").replace(STAR, "").strip(QUERY + CLASS) or "x")
            _base_classes(sample, facts, classes, flags, False)
            flags.discard("regenerable")
            if literal in (facts.home, "/root") and HOLE in first and not first.strip(HOLE + "/"):
                classes.add("home")
    if facts.project_root == literal and first.startswith(".") and matches(first, ".git"):
        classes.add("project_critical")
        flags.add("git-dir")
    if literal == "/dev":
        for device in ("sda", "nvme0n1", "vda", "disk0", "hda"):
            if matches(first, device):
                classes.add("device")


def _secret(path: str, facts: Facts) -> bool:
    """Whether the path is, holds or can match key material or credentials."""
    name = path.rpartition("/")[2].lower()
    if MARKS.isdisjoint(name):
        if name.endswith(_NOT_SECRET_ENDINGS):
            return False
        if name == ".npmrc":
            # A project's own says which registry it uses; the token is in the one of the home folder.
            return path in (facts.home + "/.npmrc", "/root/.npmrc") or (
                path.count("/") < 4 and path.startswith(("/home/", "/Users/"))
            )
        if name in SECRET_NAMES:
            holders = _SECRET_ONLY_BELOW.get(name)
            if (
                holders is None
                or any("/" + folder + "/" in path for folder in holders)
                or (name == "sudoers" and path == "/etc/sudoers")
            ):
                return True
        if name.startswith(".env.") or (name.startswith(".env") and name[4:5] in ("-", "_")):
            return True
        if name.endswith(SECRET_ENDINGS) and not name.startswith("cacert") and "site-packages" not in path:
            return True
        if name.endswith(".env") and len(name) < 40:
            return True
        if "/.ssh/" in path and name not in _SSH_PUBLIC:
            return True
        if path.startswith("/proc/") and name == "environ":
            return True
    else:
        if STAR not in name and HOLE not in name and any(matches(name, secret) for secret in SECRET_NAMES):
            return True
        lead = name.lstrip(STAR + HOLE)
        if matches(name, ".env") and name.lstrip(QUERY + CLASS) != STAR and name.startswith((".", QUERY, CLASS)):
            return name not in (".*", "." + STAR, STAR)
        if lead.endswith((".pem", ".p12", ".pfx")) and MARKS.isdisjoint(lead):
            return True
        if ("id_" in name and matches(name, "id_rsa")) or (matches(name, "id_ed25519") and name.startswith("id")):
            return True
        if name.startswith((".env" + STAR, ".env." + STAR)):
            return True
        for folder in _SECRET_FOLDERS:
            if "/" + folder + "/" in path and (
                matches(name, "id_rsa") or matches(name, "credentials") or matches(name, "config")
            ):
                return True
    if path.endswith(_SECRET_FOLDERS) and path.rpartition("/")[2] in _SECRET_FOLDERS:
        return path.rpartition("/")[2] in (".ssh", ".gnupg", ".aws")
    slashed = path if path.startswith("/") else "/" + path
    for folder, below in SECRET_PLACES:
        lead = folder if folder.startswith("/") else "/" + folder
        at = slashed.find(lead + "/")
        if at >= 0:
            rest = slashed[at + len(lead) + 1 :]
            if (
                not below
                or rest == below
                or rest.startswith(below + "/")
                or (HOLE in rest and below.startswith(rest.split(HOLE)[0]))
            ):
                return True
        elif not below and slashed.endswith(lead):
            return True
    return False


# Written by package managers, committed, and made again from what they were made from.
_LOCKS = frozenset(("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb", "bun.lock", "poetry.lock", "uv.lock", "pdm.lock", "pipfile.lock", "cargo.lock", "gemfile.lock", "composer.lock", "go.sum", "podfile.lock", "mix.lock", "flake.lock", "pubspec.lock", "package.resolved", "deno.lock", "junit.xml", "coverage.xml", "lcov.info"))  # fmt: skip


def _regenerable(path: str) -> bool:
    """Whether some folder on the way is one that tools make again."""
    for part in path.lower().split("/"):
        if part in _REGENERABLE:
            return True
    last = path.rpartition("/")[2].lower()
    return last in _LOCKS or last.endswith(
        (".pyc", ".pyo", ".log", ".tmp", ".o", ".egg-info", ".bak", ".swp", ".ds_store", "~", ".class", ".tsbuildinfo")
    )
