"""Cloud providers and infrastructure as code."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.programs.verbs import Row, first, is_dry, note
from guardhook.analysis.values import UNKNOWN, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

_DESTROYING = ("delete", "terminate", "destroy", "remove", "purge", "deregister", "drop", "wipe", "erase", "release", "revoke", "disable", "cancel", "empty", "uninstall", "reset", "rm", "rb", "teardown", "detach", "force-delete", "batch-delete", "schedule-key-deletion", "abandon", "undeploy", "deprovision", "kill", "leave", "close")  # fmt: skip
_CHANGING = ("create", "update", "put", "modify", "set", "attach", "add", "deploy", "apply", "start", "stop", "reboot", "run", "enable", "register", "associate", "authorize", "scale", "resize", "import", "restore", "promote", "publish", "rollback", "rotate", "upload", "invoke", "patch", "replace", "tag", "mb", "cp", "mv", "sync", "write", "up", "change", "restart", "ssh", "exec", "send-command", "reset-db-parameter-group")  # fmt: skip
_SECRETS = ("get-secret-value", "get-parameter", "get-parameters", "get-parameters-by-path", "print-access-token", "print-identity-token", "get-access-token", "get-session-token", "export-credentials", "decrypt", "get-authorization-token", "get-credentials-for-identity", "get-federation-token", "list-keys", "show-connection-string", "access")  # fmt: skip
_PRIVILEGED = ("attach-user-policy", "attach-role-policy", "put-user-policy", "put-role-policy", "create-access-key", "create-login-profile", "update-assume-role-policy", "add-user-to-group", "add-iam-policy-binding", "set-iam-policy", "create-user", "create-policy-version", "put-bucket-policy", "put-bucket-acl", "put-public-access-block", "delete-public-access-block", "create-service-specific-credential")  # fmt: skip

# Tools that have plain verbs, as rows.
_ROWS: dict[str, tuple[Row, ...]] = {
    "terraform": (("destroy", "cloud", ("iac", "destroy")), ("apply", "cloud", ("iac", "apply")), ("state rm", "cloud", ("iac", "state", "delete")), ("state push|mv|replace-provider", "cloud", ("iac", "state")), ("taint|untaint", "cloud", ("iac", "state")), ("workspace delete", "cloud", ("iac", "delete", "workspace")), ("force-unlock", "cloud", ("iac", "unlock")), ("import", "cloud", ("iac", "state")), ("login|logout", "cloud", ("iac",))),
    "pulumi": (("destroy|down", "cloud", ("iac", "destroy")), ("up|update", "cloud", ("iac", "apply")), ("stack rm", "cloud", ("iac", "destroy", "delete")), ("state delete", "cloud", ("iac", "state", "delete")), ("state *", "cloud", ("iac", "state")), ("refresh|import|cancel", "cloud", ("iac", "state")), ("config --show-secrets", "read", ("credential",))),
    "cdk": (("destroy", "cloud", ("iac", "destroy")), ("deploy", "cloud", ("iac", "apply"))), "cdktf": (("destroy", "cloud", ("iac", "destroy")), ("deploy", "cloud", ("iac", "apply"))), "serverless": (("remove", "cloud", ("iac", "destroy")), ("deploy", "cloud", ("iac", "apply"))), "sls": (("remove", "cloud", ("iac", "destroy")), ("deploy", "cloud", ("iac", "apply"))),
    "sam": (("delete", "cloud", ("iac", "destroy")), ("deploy", "cloud", ("iac", "apply"))), "copilot": (("* delete", "cloud", ("iac", "destroy")), ("* deploy", "cloud", ("iac", "apply"))), "chalice": (("delete", "cloud", ("iac", "destroy")),), "eb": (("terminate", "cloud", ("destroy",)), ("deploy", "cloud", ("apply",))), "kops": (("delete *", "cloud", ("destroy", "delete")), ("rolling-update", "cloud", ("apply",))), "eksctl": (("delete *", "cloud", ("destroy", "delete")), ("drain *", "cloud", ("write",))),
    "ansible-playbook": (), "ansible": (), "vagrant": (("destroy", "cloud", ("iac", "destroy", "vm")),), "packer": (("build", "cloud", ("iac", "apply")),), "nomad": (("job stop", "cloud", ("delete",)), ("stop", "cloud", ("delete",)), ("namespace delete", "cloud", ("delete",)), ("system gc", "cloud", ("delete",)), ("node drain", "cloud", ("write",))), "consul": (("kv delete", "cloud", ("delete",)), ("force-leave|leave", "cloud", ("delete",))),
    "vault": (("kv delete|destroy|metadata", "cloud", ("delete", "secrets")), ("delete", "cloud", ("delete", "secrets")), ("secrets disable", "cloud", ("delete", "secrets")), ("auth disable", "cloud", ("delete", "secrets")), ("policy delete", "cloud", ("delete", "secrets")), ("operator seal", "cloud", ("write", "secrets")), ("token revoke", "cloud", ("delete", "secrets")), ("lease revoke", "cloud", ("delete", "secrets")), ("read|kv get", "read", ("credential",)), ("kv get", "read", ("credential",))),
    "heroku": (("apps:destroy|apps:delete|destroy", "cloud", ("destroy", "delete")), ("pg:reset", "database", ("drop", "heroku")), ("addons:destroy", "cloud", ("destroy", "delete")), ("config:unset|domains:remove|pipelines:destroy|releases:rollback|ps:stop|ps:kill|pg:kill|pg:killall", "cloud", ("delete",)), ("config", "read", ("credential",)), ("config:get", "read", ("credential",)), ("config:set|ps:scale|ps:restart|maintenance:on", "cloud", ("write",)), ("pg:copy|pg:push|pg:restore|pg:backups:restore", "database", ("restore", "heroku"))),
    "flyctl": (("secrets set|unset|import", "cloud", ("write",)), ("apps destroy", "cloud", ("destroy", "delete")), ("destroy", "cloud", ("destroy", "delete")), ("volumes destroy|delete", "cloud", ("destroy", "delete")), ("machine|machines destroy|remove|kill", "cloud", ("destroy", "delete")), ("postgres detach", "cloud", ("delete",)), ("secrets unset", "cloud", ("delete",)), ("deploy", "cloud", ("apply",))),
    "vercel": (("remove|rm", "cloud", ("destroy", "delete")), ("project rm|remove", "cloud", ("destroy", "delete")), ("domains rm", "cloud", ("delete",)), ("env rm", "cloud", ("delete",)), ("dns rm", "cloud", ("delete",)), ("env pull", "cloud", ("read",)), ("deploy|--prod", "cloud", ("apply",)), ("alias rm", "cloud", ("delete",)), ("blob del", "cloud", ("delete",))),
    "netlify": (("sites:delete", "cloud", ("destroy", "delete")), ("env:unset", "cloud", ("delete",)), ("deploy", "cloud", ("apply",)), ("blobs:delete", "cloud", ("delete",))), "firebase": (("firestore:delete|database:remove", "database", ("drop", "firebase")), ("projects:delete|hosting:disable|functions:delete|apps:delete", "cloud", ("destroy", "delete")), ("deploy", "cloud", ("apply",)), ("auth:import", "cloud", ("write",))),
    "wrangler": (("delete", "cloud", ("destroy", "delete")), ("kv:namespace|kv:key|kv:bulk delete", "cloud", ("delete",)), ("kv namespace|key|bulk delete", "cloud", ("delete",)), ("r2 bucket|object delete", "cloud", ("delete",)), ("d1 delete", "database", ("drop", "d1")), ("d1 execute", "database", ("execute", "d1")), ("pages project|deployment delete", "cloud", ("delete",)), ("secret delete", "cloud", ("delete",)), ("deploy|publish", "cloud", ("apply",)), ("queues delete", "cloud", ("delete",))),
    "railway": (("down|delete", "cloud", ("destroy", "delete")), ("up", "cloud", ("apply",)), ("environment delete", "cloud", ("destroy", "delete")), ("volume delete", "cloud", ("destroy", "delete"))), "render": (("services delete", "cloud", ("delete",)),), "supabase": (("db reset", "database", ("drop", "supabase")), ("projects delete", "cloud", ("destroy", "delete")), ("functions delete", "cloud", ("delete",)), ("secrets unset", "cloud", ("delete",)), ("db push", "database", ("migrate", "supabase")), ("branches delete", "cloud", ("delete",)), ("migration repair|down", "database", ("migrate", "supabase"))),
    "pscale": (("database|branch|password|backup delete", "database", ("drop", "planetscale")),), "neonctl": (("projects|branches|databases|roles delete", "database", ("drop", "neon")), ("branches reset|restore", "database", ("restore", "neon"))), "turso": (("db destroy", "database", ("drop", "turso")), ("group destroy", "cloud", ("delete",))), "stripe": (("* delete", "cloud", ("delete",)), ("* cancel", "cloud", ("delete",)), ("trigger", "cloud", ("write",))), "okta": (("* delete", "cloud", ("delete",)),), "auth0": (("* delete", "cloud", ("delete",)), ("* * delete", "cloud", ("delete",))),
    "amplify": (("delete|remove", "cloud", ("destroy", "delete")), ("push", "cloud", ("apply",))), "kubeadm": (("reset", "cloud", ("k8s", "destroy")),), "helmfile": (("destroy|delete", "cloud", ("k8s", "destroy")), ("apply|sync", "cloud", ("k8s", "apply"))), "atlas": (("* delete", "cloud", ("delete",)), ("* * delete", "cloud", ("delete",))),
}  # fmt: skip
_ROWS["tofu"] = _ROWS["terraform"]
_ROWS["fly"] = _ROWS["flyctl"]
_ROWS["planetscale"] = _ROWS["pscale"]


def _provider(call: Call) -> Val:
    """aws, gcloud, az and their like: `service … verb-noun`."""
    name = call.name
    words = [
        v.text
        for v in options(
            call.args,
            short="goiqn",
            long=(
                "--region",
                "--profile",
                "--project",
                "--zone",
                "--output",
                "--query",
                "--filter",
                "--format",
                "--resource-group",
                "--name",
                "--endpoint-url",
                "--subscription",
                "--account",
                "--cli-input-json",
                "--location",
            ),
        ).rest
    ]
    flags: set[str] = {"cloud"}
    service = words[0] if words else ""
    if service and service.replace("-", "").isalnum():
        flags.add(service)
    detail = " ".join([name, *(w.replace(HOLE, "…") for w in words)])[:160]
    texts = set(call.texts())
    if service in ("s3", "storage") or name in ("s4cmd",):
        return _storage(call, words, flags, detail)
    verbs = [w for w in words[0 if name == "bq" else 1 : 5] if w and w[0].isalpha()]
    if words[:2] == ["configure", "get"] and any(k in w for w in words[2:3] for k in ("secret", "token")):
        call.emit("read", ("credential",), path_classes=frozenset(("secret",)), detail=detail)
        return Val(HOLE, frozenset(("secret",)), detail)
    secret = next(
        (
            v
            for v in verbs
            if v in _SECRETS and (v != "list-keys" or service == "storage") and (v != "access" or "secrets" in words)
        ),
        "",
    )
    privileged = next((v for v in verbs if v in _PRIVILEGED), "")
    if ("keys" in words and "create" in words) or words[:3] == ["role", "assignment", "create"]:
        privileged = privileged or "create"
    if any(v.startswith(("authorize-security-group", "put-bucket-policy")) for v in verbs) or (
        "firewall-rules" in words and "create" in words
    ):
        flags.add("opens-network")
    destroying = next(
        (v for v in verbs if v in _DESTROYING or v.removeprefix("batch-").split("-")[0] in _DESTROYING), ""
    )
    changing = next((v for v in verbs if v in _CHANGING or v.split("-")[0] in _CHANGING), "")
    if is_dry(call):
        flags.add("dry-run")
    if texts & {
        "--force",
        "--yes",
        "-y",
        "--quiet",
        "-q",
        "--skip-final-snapshot",
        "--force-delete-without-recovery",
        "--recursive",
        "--no-prompt",
    }:
        flags.add("force")
    if name == "az" and words[:2] == ["keyvault", "secret"] and {"show", "download"} & set(words[2:3]):
        secret = "show"
    if secret:
        call.emit("read", ("credential",), path_classes=frozenset(("secret",)), detail=detail)
        return Val(HOLE, frozenset(("secret",)), detail)
    if privileged:
        call.emit("privilege", ("cloud-iam",), detail=detail)
    if destroying:
        call.emit(
            "cloud",
            flags
            | {"delete"}
            | (
                {"destroy"}
                if destroying.split("-")[0] in ("terminate", "delete", "destroy", "purge", "force-delete")
                else set()
            ),
            detail=detail,
        )
    elif changing or privileged:
        call.emit("cloud", flags | {"write"}, detail=detail)
    elif words:
        call.emit("cloud", flags | {"read"}, detail=detail)
    if "send-command" in verbs or "start-session" in verbs or ("ssh" in verbs and name == "gcloud"):
        commands = options(call.args, long=("--command", "--parameters")).value("--command")
        call.emit("connect", ("ssh", "command"), host="cloud", detail=detail)
        if commands is not None:
            keep = call.walker.inside
            call.walker.inside = "remote"
            call.code(commands, "remote", name, state=call.state.fork())
            call.walker.inside = keep
    for value in call.args:
        if value.text.startswith(("file://", "fileb://")):
            call.read(Val(value.text.partition("://")[2]), ("upload",))
    return Val(HOLE, origin=f"output of {name}")


def _storage(call: Call, words: list[str], flags: set[str], detail: str) -> Val:
    verb = words[1] if len(words) > 1 else ""
    texts = set(call.texts())
    if verb in ("rm", "rb", "delete", "delete-batch") or (len(words) > 2 and words[2].startswith("delete")):
        more = {"delete", "storage"}
        if texts & {"--recursive", "-r", "--force"} or verb == "rb":
            more |= {"recursive", "destroy"}
        if is_dry(call):
            more.add("dry-run")
        call.emit("cloud", flags | more, detail=detail)
        return UNKNOWN
    if verb == "sync" and texts & {"--delete", "--delete-unmatched-destination-objects"}:
        call.emit(
            "cloud", flags | {"delete", "storage", "sync"} | ({"dry-run"} if is_dry(call) else set()), detail=detail
        )
    if verb in ("blob", "file", "fs") and words[2:3] and words[2] in ("upload", "upload-batch", "sync"):
        given = options(call.args, short="fs", long=("--file", "--source")).every("-f", "--file", "-s", "--source")
        call.emit("connect", {"storage", "upload"}, host="cloud-storage", detail=detail)
        for value in given:
            content = call.read(value, ("upload",))
            if content.taint & {"secret", "env-secret", "environment"}:
                call.emit("secret_flow", ("network", "storage"), detail=f"{content.origin} to cloud storage")
    elif verb in ("cp", "mv", "sync", "upload", "upload-batch", "rsync", "presign", "sign-url"):
        sources = [w for w in words[2:-1] if "://" not in w]
        call.emit(
            "connect",
            {"storage", "upload"} if sources or verb == "presign" else {"storage"},
            host="cloud-storage",
            detail=detail,
        )
        for source in sources:
            content = call.input if source == "-" else call.read(Val(source), ("upload",))
            if content.taint & {"secret", "env-secret", "environment"}:
                call.emit("secret_flow", ("network", "storage"), detail=f"{content.origin} to {words[-1]}")
        if words and "://" not in words[-1] and words[-1] != "-" and not sources:
            place = call.change("write", Val(words[-1]), ("download",))
            call.walker.files[place.text] = Val(HOLE, frozenset(("network",)), detail)
        elif words and words[-1] == "-":
            return Val(HOLE, frozenset(("network",)), detail)
    elif verb:
        changing = verb in ("mb", "create", "website") or any(
            w.startswith(("create", "update", "set", "add")) for w in words[1:4]
        )
        call.emit("cloud", flags | ({"write"} if changing else {"read"}), detail=detail)
    return UNKNOWN


def _rows(call: Call) -> Val:
    opts = options(
        call.args,
        long=(
            "-chdir",
            "-var",
            "-var-file",
            "-target",
            "--stack",
            "--app",
            "-a",
            "--profile",
            "--region",
            "--stage",
            "-s",
            "-target",
            "--cwd",
            "-C",
            "--config",
            "-c",
        ),
        single_dash=True,
    )
    words = [v.text for v in opts.rest]
    texts = set(call.texts())
    if call.name in ("terragrunt",):
        words = [w for w in words if w not in ("run", "run-all", "--")]
        if "run-all" in texts or "--all" in texts:
            texts.add("-auto-approve")
    if call.name == "heroku" and words[:1] in (["run"], ["run:detached"]):
        keep, call.walker.inside = call.walker.inside, "remote"
        try:
            return call.run(opts.rest[1:], "heroku run", state=call.state.fork())
        finally:
            call.walker.inside = keep
    if call.name == "heroku" and words[:1] == ["pg:psql"]:
        from guardhook.analysis.programs.databases import statements

        statements(call.walker, (opts.value("-c", "--command") or Val("")).text, "heroku", call)
    if call.name == "vercel" and not words and "--prod" in texts:
        words = ["deploy"]
    row = first(_ROWS.get("terraform" if call.name == "terragrunt" else call.name, ()), words)
    if row is None:
        return call.result()
    more: set[str] = set()
    if texts & {
        "-auto-approve",
        "--auto-approve",
        "--yes",
        "-y",
        "--force",
        "-f",
        "-force",
        "--skip-preview",
        "--require-approval=never",
        "--confirm",
        "--non-interactive",
        "--terragrunt-non-interactive",
    } or any(t.startswith(("-auto-approve", "--confirm")) for t in texts):
        more.add("force")
    if "-destroy" in texts or "--destroy" in texts:
        more |= {"destroy"}
    if any(t.startswith(("-target", "--target")) for t in texts):
        more.add("targeted")
    note(call, row, words, more)
    if row[1] == "read":
        return Val(HOLE, frozenset(("secret",)), " ".join(words[:3]))
    return call.result()


def _ansible(call: Call) -> Val:
    opts = options(
        call.args,
        short="amiMebutfl",
        long=(
            "--module-name",
            "--args",
            "--inventory",
            "--extra-vars",
            "--limit",
            "--become-user",
            "--user",
            "--vault-password-file",
            "--tags",
        ),
    )
    if opts.has("-C", "--check", "--list-hosts", "--syntax-check", "--list-tasks", "--version"):
        return UNKNOWN
    module = (opts.value("-m", "--module-name") or Val("command")).text
    arguments = opts.value("-a", "--args")
    call.emit("cloud", {"ansible", "iac", "apply"}, detail=" ".join(call.argv)[:160])
    if opts.has("-b", "--become"):
        call.emit("privilege", ("become",), detail="ansible --become")
    if arguments is not None and module in (
        "shell",
        "command",
        "raw",
        "ansible.builtin.shell",
        "ansible.builtin.command",
        "script",
    ):
        keep = call.walker.inside
        local = any(v.text in ("localhost", "127.0.0.1") for v in opts.rest)
        call.walker.inside = keep if local else "remote"
        call.code(arguments, "inline", "ansible", state=call.state.fork())
        call.walker.inside = keep
    elif arguments is not None and module == "file" and "state=absent" in arguments.text:
        path = next((w.partition("=")[2] for w in arguments.text.split() if w.startswith(("path=", "dest="))), "")
        if path:
            call.change("delete", Val(path), ("recursive", "force", "remote"))
    return UNKNOWN


HANDLERS: dict[str, Handler] = {
    "": _provider, **dict.fromkeys(_ROWS, _rows), "terragrunt": _rows, "ansible": _ansible, "ansible-playbook": _ansible, "packer": lambda call: call.result(),
    "ansible-vault": lambda call: call.result(),
}  # fmt: skip
