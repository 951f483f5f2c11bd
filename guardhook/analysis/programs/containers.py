"""Containers, clusters and virtual machines."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.programs.verbs import Row, first, is_dry, note, operands
from guardhook.analysis.values import UNKNOWN, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

_RUN_SHORT = "abceghklmnpuvwe"
_RUN_LONG = tuple("--" + n for n in (
    "add-host", "annotation", "attach", "blkio-weight", "cap-add", "cap-drop", "cgroup-parent", "cgroupns", "cidfile", "cpu-period", "cpu-quota", "cpu-shares", "cpus", "cpuset-cpus", "device", "dns", "dns-search",
    "domainname", "entrypoint", "env", "env-file", "expose", "gpus", "group-add", "health-cmd", "hostname", "ip", "ipc", "isolation", "label", "label-file", "link", "log-driver", "log-opt", "mac-address", "memory",
    "memory-swap", "mount", "name", "network", "net", "network-alias", "oom-score-adj", "pid", "pids-limit", "platform", "publish", "pull", "restart", "runtime", "security-opt", "shm-size", "stop-signal", "storage-opt",
    "sysctl", "tmpfs", "ulimit", "user", "userns", "uts", "volume", "volume-driver", "volumes-from", "workdir", "detach-keys", "index", "file", "project-name", "profile", "env-from-file", "scale", "progress", "user",
))  # fmt: skip
_ENGINE_ROWS: tuple[Row, ...] = (
    ("system prune", "cloud", ("container", "prune", "delete")), ("volume rm|remove|prune", "cloud", ("container", "volume", "delete")), ("image|builder|buildx|network|container prune", "cloud", ("container", "prune", "delete")), ("rm|remove", "cloud", ("container", "rm")),
    ("container rm|remove|kill|stop", "cloud", ("container", "rm")), ("rmi", "cloud", ("container", "image", "rm")), ("image rm|remove", "cloud", ("container", "image", "rm")), ("network rm|remove", "cloud", ("container", "rm")), ("kill|stop", "cloud", ("container", "stop")), ("push", "publish", ("container-image",)),
    ("image push", "publish", ("container-image",)), ("swarm leave|init", "cloud", ("container", "swarm")), ("stack rm|down", "cloud", ("container", "delete", "swarm")), ("service rm", "cloud", ("container", "delete", "swarm")), ("secret rm", "cloud", ("container", "delete", "secrets")), ("context rm", "cloud", ("container", "rm")), ("pod rm", "cloud", ("container", "rm")), ("node rm", "cloud", ("container", "delete", "swarm")), ("machine rm", "cloud", ("container", "delete", "vm")),
    ("login", "cloud", ("container", "login")), ("system reset", "cloud", ("container", "prune", "delete", "volume")), ("manifest push", "publish", ("container-image",)), ("plugin rm|disable", "cloud", ("container", "rm")), ("checkpoint rm", "cloud", ("container", "rm")),
)  # fmt: skip
_KUBE_ROWS: tuple[Row, ...] = (
    ("delete", "cloud", ("k8s", "delete")), ("drain", "cloud", ("k8s", "drain")), ("cordon|uncordon|taint", "cloud", ("k8s", "write")), ("scale", "cloud", ("k8s", "write", "scale")), ("apply|create|run|expose|set|label|annotate|edit|autoscale|patch", "cloud", ("k8s", "write")), ("replace", "cloud", ("k8s", "write", "replace")),
    ("rollout undo|restart|pause", "cloud", ("k8s", "write")), ("certificate approve", "cloud", ("k8s", "write")), ("cp", "cloud", ("k8s", "copy")), ("config delete-context|delete-cluster|unset", "cloud", ("k8s", "config")), ("proxy|port-forward", "connect", ("tunnel",)), ("auth reconcile", "cloud", ("k8s", "write")), ("debug", "cloud", ("k8s", "write")),
)  # fmt: skip
_OTHER_ROWS: dict[str, tuple[Row, ...]] = {
    "helm": (("uninstall|delete|del|un", "cloud", ("k8s", "delete", "helm")), ("rollback", "cloud", ("k8s", "write", "helm")), ("install|upgrade", "cloud", ("k8s", "write", "helm")), ("push", "publish", ("helm",)), ("repo remove", "cloud", ("helm",))),
    "argocd": (("app delete", "cloud", ("k8s", "delete")), ("app sync|rollback|terminate-op", "cloud", ("k8s", "write")), ("cluster|proj|repo rm|delete", "cloud", ("k8s", "delete"))), "flux": (("uninstall|delete", "cloud", ("k8s", "delete")), ("suspend", "cloud", ("k8s", "write"))), "istioctl": (("uninstall", "cloud", ("k8s", "delete")),),
    "velero": (("backup|restore|schedule delete", "cloud", ("k8s", "delete", "backup")),), "minikube": (("delete", "cloud", ("k8s", "local", "delete")),), "kind": (("delete", "cloud", ("k8s", "local", "delete")),), "k3d": (("cluster delete", "cloud", ("k8s", "local", "delete")),), "lxc": (("delete|rm", "cloud", ("container", "delete")), ("exec", "run", ())), "incus": (("delete|rm", "cloud", ("container", "delete")),),
    "virsh": (("undefine|destroy|vol-delete|pool-delete|pool-destroy|snapshot-delete|vol-wipe", "cloud", ("vm", "delete")),), "multipass": (("delete|purge", "cloud", ("vm", "delete")),), "vboxmanage": (("unregistervm|closemedium", "cloud", ("vm", "delete")),), "colima": (("delete", "cloud", ("vm", "delete")),), "limactl": (("delete|rm|factory-reset", "cloud", ("vm", "delete")),), "docker-machine": (("rm", "cloud", ("vm", "delete")),), "skopeo": (("delete", "publish", ("container-image", "removes")), ("copy|sync", "cloud", ("container", "image"))), "buildah": (("push", "publish", ("container-image",)), ("rm|rmi", "cloud", ("container", "rm"))), "crane": (("push|delete", "publish", ("container-image",)),), "oras": (("push", "publish", ("container-image",)), ("delete", "publish", ("container-image", "removes"))), "k9s": (), "skaffold": (("delete", "cloud", ("k8s", "delete")), ("run|deploy", "cloud", ("k8s", "write"))), "talosctl": (("reset", "cloud", ("k8s", "destroy")),), "orb": (("delete", "cloud", ("vm", "delete")),), "tilt": (("down", "cloud", ("k8s", "delete")),), "rancher": (("* delete", "cloud", ("k8s", "delete")),), "machinectl": (("remove|terminate|poweroff", "cloud", ("container", "delete")),), "qemu-img": (), "kustomize": (), "ctr": (("containers|c delete|rm", "cloud", ("container", "rm")), ("images|i rm", "cloud", ("container", "image", "rm"))), "crictl": (("rm|rmp|rmi|stop|stopp", "cloud", ("container", "rm")),),
}  # fmt: skip


def _engine(call: Call) -> Val:
    args = list(call.args)
    index = 0
    while index < len(args) and args[index].text.startswith("-"):
        index += (
            2
            if args[index].text
            in (
                "-H",
                "--host",
                "-c",
                "--context",
                "--config",
                "-l",
                "--log-level",
                "--url",
                "--connection",
                "-f",
                "--file",
                "-p",
                "--project-name",
                "--profile",
                "--env-file",
            )
            else 1
        )
    rest = args[index:]
    if not rest:
        return UNKNOWN
    verb = rest[0].text
    if call.name in ("docker-compose", "podman-compose"):
        return _compose(call, rest)
    if verb == "compose":
        inner = rest[1:]
        while inner and inner[0].text.startswith("-"):
            inner = (
                inner[2:]
                if inner[0].text in ("-f", "--file", "-p", "--project-name", "--profile", "--env-file")
                else inner[1:]
            )
        return _compose(call, inner)
    if verb == "container" and len(rest) > 1 and rest[1].text in ("run", "exec", "create"):
        rest = rest[1:]
        verb = rest[0].text
    if verb in ("run", "create"):
        return _run(call, rest[1:])
    if verb == "exec":
        return _exec(call, rest[1:])
    if verb in ("build", "buildx"):
        return _build(call, rest)
    if verb in ("cp",) and len(rest) > 2:
        source, target = rest[-2], rest[-1]
        if ":" not in source.text:
            call.read(source, ("copy",))
        if ":" not in target.text:
            call.change("write", target, ("copy",))
        return UNKNOWN
    words = [v.text for v in options(rest, short="fl", long=("--filter", "--format")).rest]
    row = first(_ENGINE_ROWS, words)
    if row is not None:
        texts = set(call.texts())
        more: set[str] = set()
        if texts & {"-f", "--force"}:
            more.add("force")
        if texts & {"-a", "--all"} or any(t.startswith("-a") and "f" in t for t in texts):
            more.add("all")
        if "--volumes" in texts or "-v" in texts:
            more.add("volume")
        if any(
            (("$(" in a.raw or "`" in a.raw) and "filter" not in a.raw)
            or "listing" in a.taint
            or "stdin-args" in a.taint
            for a in rest
        ):
            more.add("all")
        note(call, row, words, more)
    if verb == "save" or verb == "export":
        saved = options(rest, short="o", long=("--output",)).value("-o", "--output")
        if saved is not None:
            call.change("write", saved, ("truncate",))
    return Val(HOLE, origin=f"output of {call.name}")


def _mounts(call: Call, opts_values: list[Val]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for value in opts_values:
        text = value.text
        if "=" in text and ("type=" in text or "source=" in text or "src=" in text):
            parts = dict(p.partition("=")[::2] for p in text.split(","))
            source = parts.get("source") or parts.get("src") or ""
            target = parts.get("target") or parts.get("destination") or parts.get("dst") or ""
            if parts.get("type", "bind") == "bind" and source and target:
                out.append((call.place(Val(source)).text, target))
            continue
        pieces = text.split(":")
        if len(pieces) >= 2 and (pieces[0].startswith(("/", ".", "~", HOLE))):
            out.append((call.place(Val(pieces[0])).text, pieces[1]))
    return out


def _run(call: Call, args: list[Val]) -> Val:
    opts = options(args, short=_RUN_SHORT, long=_RUN_LONG, permute=False)
    mounts = _mounts(call, opts.every("-v", "--volume", "--mount"))
    flags: set[str] = {"container"}
    if opts.has("--privileged"):
        flags.add("privileged")
    for value in opts.every("--pid", "--net", "--network", "--ipc", "--userns", "--uts"):
        if value.text == "host":
            flags.add("host-namespace")
    if any(v.text == "host" for v in opts.every("--pid")):
        flags.add("host-pid")
    if any(
        v.text.upper() in ("SYS_ADMIN", "ALL", "SYS_PTRACE", "SYS_MODULE", "CAP_SYS_ADMIN", "DAC_READ_SEARCH")
        for v in opts.every("--cap-add")
    ):
        flags.add("capability")
    if any("unconfined" in v.text for v in opts.every("--security-opt")):
        flags.add("unconfined")
    for outer, _ in mounts:
        place = call.place(Val(outer))
        if place.classes & {"root", "system", "home"} or "docker.sock" in outer or "containerd.sock" in outer:
            flags.add("host-mount" if "sock" not in outer else "docker-socket")
        if "secret" in place.classes:
            flags.add("secret-mount")
        if "guard" in place.classes:
            flags.add("guard-mount")
    danger = flags & {"privileged", "host-pid", "capability", "unconfined", "host-mount", "docker-socket"}
    if danger:
        call.emit("privilege", danger | {"container"}, detail=" ".join(call.argv)[:160])
    if not opts.rest:
        return UNKNOWN
    inner = opts.rest[1:]
    entry = opts.value("--entrypoint")
    if entry is not None:
        inner = [entry, *inner]
    if not inner:
        return UNKNOWN
    return _inside(call, inner, mounts, (opts.value("-w", "--workdir") or Val("/")).text)


def _inside(call: Call, words: list[Val], mounts: list[tuple[str, str]], cwd: str) -> Val:
    walker = call.walker
    keep = walker.inside, walker.mounts, walker.files
    state = call.state.fork()
    state.cwd = cwd if cwd.startswith("/") else "/"
    if walker.inside != "remote":
        walker.inside, walker.mounts = "container", mounts
    try:
        return call.run(words, call.name, state=state)
    finally:
        walker.inside, walker.mounts, walker.files = keep


def _exec(call: Call, args: list[Val]) -> Val:
    opts = options(
        args,
        short="euw",
        long=("--env", "--env-file", "--user", "--workdir", "--detach-keys", "--index"),
        permute=False,
    )
    inner = opts.rest[1:]
    if not inner:
        return UNKNOWN
    shell = inner[0].text.rpartition("/")[2]
    if shell in ("sh", "bash", "zsh", "ash") and len(inner) == 1 and call.stdin is None:
        call.emit("run", ("interactive", "shell", "container"), detail="a shell in a container")
        return UNKNOWN
    return _inside(call, inner, [], (opts.value("-w", "--workdir") or Val("/")).text)


def _build(call: Call, rest: list[Val]) -> Val:
    if "--push" in call.texts() or any("push=true" in t or "type=registry" in t for t in call.texts()):
        call.emit("publish", ("container-image",), detail=" ".join(call.argv)[:120])
    return UNKNOWN


def _compose(call: Call, rest: list[Val]) -> Val:
    if not rest:
        return UNKNOWN
    verb = rest[0].text
    texts = {a.text for a in rest}
    if verb == "down":
        flags = {"container", "compose", "stop"}
        if texts & {"-v", "--volumes"}:
            flags |= {"volume", "delete"}
        if any(t.startswith("--rmi") for t in texts):
            flags.add("image")
        call.emit("cloud", flags, detail=" ".join(call.argv)[:120])
    elif verb in ("rm", "kill", "stop"):
        call.emit(
            "cloud",
            {"container", "compose", "rm" if verb == "rm" else "stop"}
            | (
                {"volume", "delete"}
                if "-v" in texts
                or (any(t.startswith("-") and not t.startswith("--") and "v" in t for t in texts) and verb == "rm")
                else set()
            ),
            detail=" ".join(call.argv)[:120],
        )
    elif verb in ("exec", "run"):
        opts = options(rest[1:], short="euwvpl", long=_RUN_LONG, permute=False)
        inner = opts.rest[1:]
        if inner:
            return _inside(call, inner, [], "/")
    elif verb == "push":
        call.emit("publish", ("container-image",), detail="docker compose push")
    return UNKNOWN


_KUBE_SHORT = "nfolLpk"
_KUBE_LONG = ("--address", "--namespace", "--context", "--kubeconfig", "--filename", "--selector", "--output", "--container", "--cluster", "--user", "--server", "--token", "--as", "--field-selector", "--image", "--replicas", "--type", "--patch", "--grace-period", "--timeout", "--from-literal", "--from-file", "--overrides", "--kustomize")  # fmt: skip


def _kubectl(call: Call) -> Val:
    opts = options(call.args, short=_KUBE_SHORT, long=_KUBE_LONG, permute=True)
    words = [v.text for v in opts.rest]
    texts = set(call.texts())
    if words[:1] == ["exec"] or words[:1] == ["run"]:
        marks = [i for i, a in enumerate(call.args) if a.text == "--"]
        if marks:
            inner = call.args[marks[0] + 1 :]
            if (
                words[:1] == ["exec"]
                and len(inner) == 1
                and inner[0].text.rpartition("/")[2] in ("sh", "bash", "ash", "zsh")
                and call.stdin is None
            ):
                call.emit("run", ("interactive", "shell", "container"), detail="a shell in a pod")
            elif inner:
                return _inside(call, inner, [], "/")
        elif words[:1] == ["exec"] and len(words) > 2:
            return _inside(call, opts.rest[2:], [], "/")
    if (
        words[:2] == ["get", "secret"]
        or (
            words[:1] == ["get"]
            and len(words) > 1
            and words[1].split("/")[0] in ("secrets", "secret")
            and texts & {"-o", "--output", "-oyaml", "-ojson"}
            | {t for t in texts if t.startswith(("-o", "--output", "jsonpath"))}
        )
    ) and any(t.startswith(("-o", "--output", "--template")) for t in texts):
        call.emit("read", ("credential",), path_classes=frozenset(("secret",)), detail=" ".join(call.argv)[:120])
        return Val(HOLE, frozenset(("secret",)), "a Kubernetes secret")
    if (
        words[:1] == ["create"]
        and len(words) > 1
        and words[1] in ("clusterrolebinding", "clusterrole", "rolebinding", "token", "serviceaccount")
    ):
        call.emit("privilege", ("cluster-role",), detail=" ".join(call.argv)[:120])
    row = first(_KUBE_ROWS, words)
    if words[:1] == ["cp"] and len(words) > 2 and ":" not in words[-2]:
        call.read(Val(words[-2]), ("copy",))
    if row is not None:
        more: set[str] = set()
        if texts & {"--force", "--all", "--all-namespaces", "-A"} or "--grace-period=0" in texts:
            more.add("force" if "--force" in texts or "--grace-period=0" in texts else "all")
            if texts & {"--all", "--all-namespaces", "-A"}:
                more.add("all")
        kinds = {k.rstrip("s") for w in words[1:2] for k in w.split("/")[0].split(",")}
        if kinds & {
            "namespace",
            "n",
            "node",
            "no",
            "pv",
            "persistentvolume",
            "pvc",
            "persistentvolumeclaim",
            "crd",
            "customresourcedefinition",
            "clusterrole",
            "clusterrolebinding",
            "storageclas",
        }:
            more.add("cluster-wide")
        if any(v.text in ("0",) for v in opts.every("--replicas")):
            more.add("to-zero")
        for value in opts.every("-f", "--filename"):
            if value.text.startswith(("http://", "https://")):
                more.add("from-url")
        if words[:1] == ["replace"] and "--force" not in texts:
            more.discard("force")
        if row[1] == "connect":
            shown = opts.value("--address")
            if shown is not None and shown.text not in ("localhost", "127.0.0.1"):
                call.emit("connect", ("listen", "server"), host=shown.text, detail="a port of the cluster for others")
            call.emit("connect", ("tunnel",), host="cluster")
        elif not is_dry(call):
            note(call, row, words, more)
    elif words:
        call.emit("cloud", ("k8s", "read"), detail=" ".join(call.argv)[:120])
    return Val(HOLE, origin="output of kubectl")


def _rows(call: Call) -> Val:
    words = operands(
        call,
        short="nfl",
        long=("--namespace", "--kube-context", "--values", "--set", "--version", "--name", "--profile"),
    )
    if call.name in ("lxc", "incus") and words[:1] == ["exec"]:
        texts = call.texts()
        if "--" in texts:
            return _inside(call, call.args[texts.index("--") + 1 :], [], "/")
        return UNKNOWN
    if call.name == "minikube" and words[:1] == ["ssh"]:
        return UNKNOWN
    row = first(_OTHER_ROWS.get(call.name, ()), words)
    if row is not None:
        note(call, row, words, {"from-url"} if any("://" in w for w in words) and call.name == "helm" else set())
    return call.result()


def _attach(call: Call) -> Val:
    texts = call.texts()
    if "--" in texts:
        return _inside(call, call.args[texts.index("--") + 1 :], [], "/")
    operands_ = options(
        call.args, short="DMn", long=("--directory", "--machine", "--image", "--bind"), permute=False
    ).rest
    return _inside(call, operands_, [], "/") if operands_ else UNKNOWN


HANDLERS: dict[str, Handler] = {
    "": _rows, **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose", "podman-compose"), _engine), "kubectl": _kubectl, "oc": _kubectl, "lxc-attach": _attach, "systemd-nspawn": _attach,
}  # fmt: skip
