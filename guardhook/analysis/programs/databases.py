"""Database clients: what the statements that they are given would do, also through standard input and files."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.programs.verbs import Row, first, note, operands
from guardhook.analysis.values import UNKNOWN, Val, source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler
    from guardhook.analysis.walk import Walker

# client -> (letters with a value, long options with a value, options whose value is a statement, options that name a file)
_CLIENTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "psql": ("cdfhopUvFRTPL", ("--command", "--dbname", "--file", "--host", "--port", "--username", "--output", "--set", "--variable"), ("-c", "--command"), ("-f", "--file")), "mysql": ("ehuPDSr", ("--execute", "--host", "--user", "--port", "--database", "--socket", "--init-command", "--defaults-file"), ("-e", "--execute", "--init-command"), ()),
    "mariadb": ("ehuPDS", ("--execute", "--host", "--user", "--port", "--database"), ("-e", "--execute"), ()), "sqlite3": ("", ("-cmd", "-init", "-separator"), ("-cmd",), ("-init",)), "duckdb": ("cfs", ("-c", "-s", "-init"), ("-c", "-s"), ("-f", "-init")), "sqlcmd": ("QqSUPdio", (), ("-Q", "-q"), ("-i",)),
    "clickhouse-client": ("qhud", ("--query", "--host", "--user", "--password", "--database", "--queries-file", "--port"), ("-q", "--query"), ("--queries-file",)), "cqlsh": ("efukp", ("--execute", "--file", "--username", "--password", "--keyspace"), ("-e", "--execute"), ("-f", "--file")), "cockroach": ("e", ("--execute", "--url", "--host", "--file", "--database"), ("-e", "--execute"), ("--file",)),
    "snowsql": ("qfauwd", ("--query", "--filename"), ("-q", "--query"), ("-f", "--filename")), "usql": ("cf", ("--command", "--file"), ("-c", "--command"), ("-f", "--file")), "mycli": ("eDhuP", ("--execute",), ("-e", "--execute"), ()), "pgcli": ("hpUd", (), (), ()), "litecli": ("e", (), ("-e",), ()), "cypher-shell": ("aupdf", ("--file",), (), ("-f", "--file")), "influx": ("h", ("-execute", "--execute"), ("-execute", "--execute"), ()), "sqlplus": ("", (), (), ()), "clickhouse": ("q", ("--query",), ("-q", "--query"), ()), "sqlite": ("", (), (), ()), "mongo": ("uph", ("--eval", "--host", "--username", "--password"), ("--eval",), ()), "mongosh": ("uphf", ("--eval", "--host", "--username", "--password", "--file"), ("--eval",), ("-f", "--file")),
}  # fmt: skip

_ROWS: dict[str, tuple[Row, ...]] = {
    "prisma": (("migrate reset", "database", ("drop", "migration-tool")), ("db push", "database", ("migrate", "migration-tool")), ("db execute", "database", ("execute", "migration-tool")), ("migrate deploy|dev", "database", ("migrate", "migration-tool"))), "alembic": (("downgrade", "database", ("migrate", "down", "migration-tool")), ("upgrade", "database", ("migrate", "migration-tool"))), "flyway": (("clean", "database", ("drop", "migration-tool")), ("migrate|undo|repair", "database", ("migrate", "migration-tool"))),
    "liquibase": (("dropAll|drop-all", "database", ("drop", "migration-tool")), ("rollback*", "database", ("migrate", "down", "migration-tool")), ("update", "database", ("migrate", "migration-tool"))), "knex": (("migrate:rollback|migrate:down", "database", ("migrate", "down", "migration-tool")), ("migrate:latest", "database", ("migrate", "migration-tool"))), "sequelize-cli": (("db:drop", "database", ("drop", "migration-tool")), ("db:migrate:undo*", "database", ("migrate", "down", "migration-tool"))), "sequelize": (("db:drop", "database", ("drop", "migration-tool")), ("db:migrate:undo*", "database", ("migrate", "down", "migration-tool"))), "typeorm": (("schema:drop", "database", ("drop", "migration-tool")), ("migration:revert", "database", ("migrate", "down", "migration-tool"))),
    "drizzle-kit": (("drop", "database", ("drop", "migration-tool")), ("push", "database", ("migrate", "migration-tool"))), "rails": (("db:drop*|db:reset|db:schema:load|db:migrate:reset|db:truncate_all|db:purge", "database", ("drop", "migration-tool")), ("db:rollback|db:migrate:down", "database", ("migrate", "down", "migration-tool"))), "artisan": (("migrate:fresh|migrate:reset|migrate:refresh|db:wipe", "database", ("drop", "migration-tool")), ("migrate:rollback", "database", ("migrate", "down", "migration-tool"))), "manage.py": (("migrate * zero", "database", ("migrate", "down", "migration-tool")), ("flush|reset_db|sqlflush", "database", ("drop", "migration-tool")),),
    "dropdb": (("", "database", ("drop", "database")),), "dropuser": (("", "database", ("drop", "user")),), "mysqladmin": (("drop", "database", ("drop", "database")), ("* drop", "database", ("drop", "database")), ("shutdown|flush-*", "database", ("admin",))), "mariadb-admin": (("drop", "database", ("drop", "database")),), "dbmate": (("drop", "database", ("drop", "migration-tool")), ("down|rollback", "database", ("migrate", "down", "migration-tool"))), "goose": (("* reset|down|down-to", "database", ("migrate", "down", "migration-tool")), ("reset|down|down-to", "database", ("migrate", "down", "migration-tool"))), "migrate": (("drop", "database", ("drop", "migration-tool")), ("down", "database", ("migrate", "down", "migration-tool"))), "hasura": (("metadata clear|reset", "database", ("drop",)),), "sqitch": (("revert", "database", ("migrate", "down", "migration-tool")),),
    "etcdctl": (("del", "database", ("delete", "etcd")), ("snapshot restore", "database", ("restore", "etcd"))), "kafka-topics": (), "rabbitmqctl": (("reset|force_reset|delete_queue|delete_vhost|delete_user|purge_queue", "database", ("drop", "rabbitmq")), ("stop_app|stop", "database", ("admin",))), "rabbitmqadmin": (("delete|purge", "database", ("delete", "drop", "rabbitmq")),), "pg_dropcluster": (("", "database", ("drop", "database")),), "curator": (("delete_indices|delete", "database", ("drop", "elastic")),), "neo4j-admin": (("database|dbms drop|delete|restore|load", "database", ("drop", "neo4j")),), "arangosh": (), "consul-kv": (), "mongoimport": (), "atlas": (("clusters delete", "database", ("drop", "mongodb")),), "osm2pgsql": (), "rethinkdb": (), "createdb": (), "elasticdump": (), "migrate-mongo": (("down", "database", ("migrate", "down")),),
}  # fmt: skip
_REDIS = {
    "flushall": ("drop", "everything"),
    "flushdb": ("drop",),
    "shutdown": ("admin",),
    "debug": ("admin",),
    "config": ("admin",),
    "slaveof": ("admin",),
    "replicaof": ("admin",),
    "del": ("delete",),
    "unlink": ("delete",),
    "eval": ("execute",),
    "script": ("execute",),
    "module": ("admin",),
    "cluster": ("admin",),
    "swapdb": ("admin",),
}


def _client(call: Call) -> Val:
    name = call.name
    short, long, code, files = _CLIENTS[name]
    opts = options(call.args, short=short, long=long, single_dash=name in ("sqlite3", "duckdb", "influx"))
    texts = opts.every(*code)
    if name in ("sqlite3", "sqlite", "duckdb", "mycli") and len(opts.rest) > 1:
        texts = [*texts, *opts.rest[1:]]
    if name in ("cypher-shell",):
        texts = [*texts, *opts.rest]
    for value in opts.every(*files):
        place = call.place(value)
        known = call.walker.files.get(place.text)
        text = known.text if known is not None else call.walker.facts.read_script(place.text)
        if text:
            texts = [*texts, Val(text)]
        else:
            call.emit("database", ("file", "unknown"), detail=f"{name} runs {place.path}")
    if name in ("sqlite3", "sqlite", "duckdb", "litecli") and opts.rest:
        place = call.place(opts.rest[0])
        if "secret" in place.classes:
            call.read(opts.rest[0])
    given = bool(texts) or bool(opts.every(*files))
    if call.stdin is not None and (not given or (name == "psql" and not texts)):
        texts = [*texts, call.stdin]
        given = True
    if name in ("sqlite3", "sqlite", "duckdb") and opts.rest and opts.rest[0].text == ":memory:":
        return UNKNOWN  # nothing is kept
    mongo = name in ("mongo", "mongosh")
    for value in texts:
        if mongo:
            _mongo(call, value.text)
        elif value.text.strip() in (HOLE, ""):
            if value.text.strip():
                call.emit("database", ("unknown",), detail=value.raw or value.origin or "statements that aren't known")
        else:
            statements(call.walker, source(value.text), name, call)
    if mongo and opts.rest and opts.rest[-1].text.endswith(".js"):
        text = call.walker.facts.read_script(call.place(opts.rest[-1]).text)
        if text:
            _mongo(call, text)
    if not given and not opts.has("-l", "--list", "--version", "-V", "--help"):
        call.emit("run", ("interactive", "database"), detail="takes statements that no hook sees")
    return Val(HOLE, origin=f"output of {name}")


def statements(walker: Walker, text: str, client: str, call: Call | None) -> None:
    """The statements of an SQL text, by their first words; strings and comments are data."""
    for words, raw in split_sql(text):
        flags = _statement(words)
        if flags is None:
            continue
        parts: dict[str, object] = {"program": client, "detail": " ".join(raw.split())[:160]}
        if call is not None:
            parts["span"] = call.span
        walker.emit("database", flags=frozenset(flags | {"sql"}), **parts)
    if call is not None:
        for line in text.split("\n"):
            stripped = line.strip()
            if stripped.startswith(("\\!", ".shell ", ".system ", "system ", "!!")) or (
                client in ("mysql", "mariadb") and stripped.startswith("\\! ")
            ):
                call.code(Val(stripped.lstrip("\\!.").removeprefix("shell ").removeprefix("system ").strip()), "inline")
            elif client == "psql" and stripped.startswith("\\copy") and "program" in stripped.lower():
                call.code(Val(stripped.partition("'")[2].partition("'")[0]), "inline")


def split_sql(text: str) -> list[tuple[list[str], str]]:
    """(upper-case words outside strings and comments, source) of each statement; at most 256."""
    out: list[tuple[list[str], str]] = []
    words: list[str] = []
    i, n, start = 0, len(text), 0
    word: list[str] = []
    while i <= n:
        c = text[i] if i < n else ";"
        if c.isalnum() or c == "_":
            word.append(c)
            i += 1
            continue
        if word:
            words.append("".join(word).upper())
            word = []
        if c in "'\"`":
            end = text.find(c, i + 1)
            words.append("''" if c == "'" else "NAME")
            i = n if end < 0 else end + 1
            continue
        if text.startswith("--", i) and i < n:
            end = text.find("\n", i)
            i = n if end < 0 else end
            continue
        if text.startswith("/*", i):
            end = text.find("*/", i)
            i = n if end < 0 else end + 2
            continue
        if c == ";":
            if words:
                out.append((words, text[start:i]))
                if len(out) >= 256:
                    break
            words = []
            start = i + 1
        elif c in "=<>":
            words.append(c)
        i += 1
    return out


def _statement(words: list[str]) -> set[str] | None:
    first_word = words[0]
    if first_word == "EXPLAIN" and "ANALYZE" not in words[:3]:
        return None
    if first_word in ("WITH", "EXPLAIN", "BEGIN", "DO"):
        first_word = next((w for w in words if w in ("DELETE", "UPDATE", "INSERT", "DROP", "TRUNCATE")), first_word)
    if first_word == "DROP":
        what = next(
            (
                w.lower()
                for w in words[1:4]
                if w
                in (
                    "TABLE",
                    "DATABASE",
                    "SCHEMA",
                    "INDEX",
                    "VIEW",
                    "USER",
                    "ROLE",
                    "COLUMN",
                    "KEYSPACE",
                    "FUNCTION",
                    "TRIGGER",
                    "COLLECTION",
                    "TYPE",
                    "SEQUENCE",
                    "POLICY",
                    "EXTENSION",
                    "PROCEDURE",
                    "OWNED",
                    "MATERIALIZED",
                    "TABLESPACE",
                )
            ),
            "other",
        )
        return {"drop", what} | ({"cascade"} if "CASCADE" in words else set())
    if first_word == "TRUNCATE":
        return {"truncate", "drop"}
    if first_word == "DELETE":
        if "WHERE" not in words:
            return {"delete", "no-where"}
        return {"delete"} | _always(words)
    if first_word == "UPDATE":
        return {"update"} | (_always(words) if "WHERE" in words else {"no-where"})
    if first_word == "ALTER":
        return (
            {"alter"}
            | ({"drop", "column"} if "DROP" in words else set())
            | ({"user"} if words[1:2] in (["USER"], ["ROLE"]) else set())
        )
    if first_word in ("GRANT", "REVOKE"):
        return {"grant"} | ({"all"} if "ALL" in words else set())
    if first_word == "CREATE":
        return {"create"} | ({"user"} if words[1:2] in (["USER"], ["ROLE"]) else set())
    if first_word in ("INSERT", "REPLACE", "MERGE", "UPSERT"):
        return {"insert"}
    if first_word == "COPY" and "PROGRAM" in words:
        return {"execute", "program"}
    if first_word in ("SHUTDOWN", "KILL", "RESET", "PURGE", "VACUUM", "DETACH", "FLUSH", "LOCK"):
        return {"admin"}
    if first_word in ("SELECT",) and (
        {"PG_READ_FILE", "LOAD_FILE", "PG_TERMINATE_BACKEND", "XP_CMDSHELL", "LO_IMPORT", "DBLINK"} & set(words)
        or "OUTFILE" in words
        or "DUMPFILE" in words
    ):
        return {"execute", "program"}
    if first_word in ("EXEC", "EXECUTE", "CALL"):
        return {"execute"} | ({"program"} if "XP_CMDSHELL" in words else set())
    return {"read"} if first_word in ("SELECT", "SHOW", "DESCRIBE", "DESC", "TABLE", "PRAGMA") else None


def _always(words: list[str]) -> set[str]:
    """`WHERE 1=1`, `WHERE true`."""
    rest = words[words.index("WHERE") + 1 :]
    if rest in (["1", "=", "1"], ["TRUE"], ["1"]) or (len(rest) == 3 and rest[1] == "=" and rest[0] == rest[2]):
        return {"no-where"}
    return set()


_MONGO = (("dropDatabase(", ("drop", "database")), (".drop(", ("drop", "collection")), (".remove({})", ("delete", "no-where")), (".deleteMany({})", ("delete", "no-where")), ("deleteMany(", ("delete",)), ("deleteOne(", ("delete",)), (".remove(", ("delete",)), ("dropUser(", ("drop", "user")), ("dropIndexes(", ("drop", "index")), ("dropCollection(", ("drop", "collection")), ("shutdownServer(", ("admin",)), ("updateMany({}", ("update", "no-where")))  # fmt: skip


def _mongo(call: Call, text: str) -> None:
    squeezed = "".join(text.split())
    for mark, flags in _MONGO:
        if mark in squeezed:
            call.emit("database", {*flags, "mongodb"}, detail=text.strip()[:160])
            break


def _redis(call: Call) -> Val:
    opts = options(
        call.args, short="hpanusriD", long=("--user", "--pass", "--eval", "--cacert", "--tls"), permute=False
    )
    lines = (
        [[v.text for v in opts.rest]]
        if opts.rest
        else [line.split() for line in call.input.text.split("\n") if line.split()]
        if call.stdin is not None
        else []
    )
    if not lines and call.stdin is None:
        call.emit("run", ("interactive", "database"), detail="takes commands that no hook sees")
    for words in lines[:256]:
        verb = words[0].lower()
        flags = _REDIS.get(verb)
        if (
            flags is None
            or (verb == "config" and words[1:2] and words[1].lower() == "get")
            or (verb == "cluster" and words[1:2] and words[1].lower() in ("info", "nodes", "slots"))
        ):
            continue
        many = verb in ("del", "unlink") and any("stdin-args" in v.taint for v in opts.rest)
        call.emit("database", {*flags, "redis", *(("drop",) if many else ())}, detail=" ".join(words)[:120])
    if opts.has("--eval"):
        call.emit("database", ("execute", "redis"))
    return UNKNOWN


def _dump(call: Call) -> Val:
    opts = options(
        call.args,
        short="fFhpUdtnTjbrPuo" if call.name.startswith("pg_") else "hupPro",
        long=(
            "--file",
            "--host",
            "--port",
            "--username",
            "--dbname",
            "--table",
            "--result-file",
            "--out",
            "--archive",
            "--uri",
            "--db",
        ),
    )
    if call.name in ("pg_restore", "mongorestore"):
        flags = {"restore"} | ({"drop"} if opts.has("-c", "--clean", "--drop") else set())
        call.emit("database", flags, detail=" ".join(call.argv)[:120])
        return UNKNOWN
    call.emit("database", ("dump", "read"), detail=" ".join(call.argv)[:120])
    target = opts.value("-f", "--file", "--result-file", "-r", "--out", "-o")
    if target is not None:
        call.change("write", target, ("dump",))
    return Val(HOLE, frozenset(("dump",)), "a database dump")


def _rows(call: Call) -> Val:
    words = operands(
        call,
        short="dpUhuc",
        long=(
            "--host",
            "--port",
            "--username",
            "--database",
            "--schema",
            "--url",
            "--env",
            "--connection",
            "--config",
            "--database-url",
            "--path",
            "-path",
            "-database",
        ),
    )
    row = (
        first(_ROWS.get(call.name, ()), words)
        if words or call.name not in ("dropdb", "dropuser", "pg_dropcluster")
        else None
    )
    if row is not None:
        note(
            call,
            row,
            words,
            {"force"}
            if any(t in ("--force", "-f", "--force-reset", "--accept-data-loss", "--yes", "-y") for t in call.texts())
            else set(),
        )
    if call.name == "prisma" and "--force-reset" in call.texts():
        call.emit("database", ("drop", "migration-tool"))
    return call.result()


def _kafka(call: Call) -> Val:
    if "--delete" in call.texts():
        call.emit("database", ("drop", "kafka"), detail=" ".join(call.argv)[:120])
    return UNKNOWN


HANDLERS: dict[str, Handler] = {
    "": _rows, **dict.fromkeys(_CLIENTS, _client), **dict.fromkeys(("redis-cli", "valkey-cli", "keydb-cli", "iredis"), _redis), **dict.fromkeys(("pg_dump", "pg_dumpall", "pg_restore", "mysqldump", "mongodump", "mongorestore"), _dump),
    "kafka-topics": _kafka, "kafka-topics.sh": _kafka,
}  # fmt: skip
