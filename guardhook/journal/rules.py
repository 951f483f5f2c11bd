"""What a secret looks like: the table of redaction rules, and its frozen form for the hook.

A rule is a name (the label in `[REDACTED:<name>]`), gates (the text must hold one of them, in the form that `where` names, see
`guardhook.journal.redact`), anchors (the pattern is tried where one of them stands), a pattern, the group that is replaced, and examples: texts that
must be changed and texts that must not. Rules share gates, because each distinct one costs a pass over every text that is recorded.
Order counts: a rule sees what the rules before it left. Patterns use bounded or possessive repeats only, so that none can backtrack for long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import regex

from guardhook.core.folders import Folders
from guardhook.core.restore import freeze
from guardhook.journal.redact import Row
from guardhook.policy.regexes import secret_problem


class Rule(msgspec.Struct, frozen=True):
    """One way to know a secret. pattern None: private key blocks, see redact."""

    name: str
    where: str
    gates: tuple[str, ...]
    anchors: tuple[str, ...]
    pattern: str | None
    group: int = 0
    hits: tuple[str, ...] = ()
    safe: tuple[str, ...] = ()


class RuleError(ValueError):
    """A user's rule that can't be used; the message says why."""


_TOKEN = r"[A-Za-z0-9_\-]"
# Words after which a value is a secret. `key` alone is not one: it needs a word before it.
_WORD = (
    r"(?:passw(?:or)?d|passphrase|passcode|secret|token|credentials?|"
    r"(?<=(?:api|access|private|auth|account|signing|master|service|encryption|secret|shared|client|deploy|license|webhook)[_\-. ]?)key)"
)
# Names about a secret, not of one: `TOKEN_URL`, `secretName`.
_ABOUT = (
    r"(?![A-Za-z0-9_\-]{0,24}?(?:[_\-]|(?-i:(?=[A-Z])))"
    r"(?:counts?|urls?|uris?|endpoint|names?|header|path|type|len|length|limit|ttl|size|prefix|field|arn|expir[a-z]{1,7})(?![A-Za-z0-9_\-]))"
)
# What stands between the word and the value: the rest of the name, closing quotes and brackets, a sign of assignment.
_REST = r"(?!s?\b[A-Za-z]{2})[A-Za-z0-9_\-]{0,40}+"
_QUOTE = r"\\{0,15}[\"'`]"
# Where a word begins, also in JSON within a text, whose line feeds are letters.
_START = r"(?:\b|(?<=\\[nrt]))"
# A value that refers to a secret instead of being one.
_REFERENCE = r"(?!\$[A-Za-z_{(]|\$\{\{|\{\{|<[A-Za-z]|%[A-Za-z(]|\[REDACTED:|\*{3,})"
_CODE = (
    r"(?!(?:self|this|os|process|env|environ|config|cfg|settings|args|opts|options|request|req|ctx|params|props|state|data|event|secrets|vault)\b[.\[?])"
    r"(?!(?:str|string|bytes|int|bool|boolean|float|none|null|nil|true|false|undefined|any|optional|number|object|required|void|self|missing|"
    r"yes|no|input|await|new|not|function|lambda|list|dict|tuple|set|type|get|this|return|async|var|let|const|expired|invalid|empty|changeme\?)\b(?![^\s,;)\]}]))"
    r"(?![A-Za-z_][\w.]*+[(\[<])"
    r"(?!(?:passw|secret|token|api|key|cred|auth)[A-Za-z_]*+(?![^\s,;)\]}\"'&]))"
)

RULES: tuple[Rule, ...] = (
    Rule(
        "jwt",
        "raw",
        ("eyJ",),
        ("eyJ",),
        r"eyJ[A-Za-z0-9_\-]{1,16384}+\.[A-Za-z0-9_\-]{1,65536}+\.[A-Za-z0-9_\-]++",
        hits=("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "xeyJa.b.c"),
        safe=("eyJ.a.b", "eyJhbGciOiJIUzI1NiJ9", "eyJa.b"),
    ),
    Rule("private_key", "raw", ("-----BEGIN ",), (), None),
    Rule(
        "aws_key",
        "long",
        ("AKIA", "ASIA"),
        ("AKIA", "ASIA"),
        r"(?:AKIA|ASIA)[0-9A-Z]{16}",
        hits=("AKIAIOSFODNN7EXAMPLE", "XAKIAIOSFODNN7EXAMPLE", "id=ASIAIOSFODNN7EXAMPLE"),
        safe=("akiaiosfodnn7example", "AKIAIOSFODNN7", "AKIA is a prefix"),
    ),
    Rule(
        "aws_secret",
        "low",
        ("secret",),
        ("aws_secret_access_key",),
        r"(?i:aws_secret_access_key(?:\\{0,15}[\"'])?\s{0,16}+[=:]\s{0,16}+(?:\\{0,15}[\"'])?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))",
        hits=(
            "aws_secret_access_key = wJalrXUtnFEMIaK7MDENGabPxRfiCYEXAMPLEKEY",
            'AWS_SECRET_ACCESS_KEY="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"',
            '{"aws_secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}',
        ),
        safe=("aws_secret_access_key", "export aws_secret_access_key=$FROM_VAULT"),
    ),
    Rule(
        "connection_string",
        "low",
        ("://",),
        ("postgres", "mysql:", "redis", "mongodb", "amqp"),
        r"(?i:(?:postgres(?:ql)?|mysql|rediss?|mongodb(?:\+srv)?|amqps?)://(?:[^\s\"'\\]|\\(?!\\{0,14}[nr\"']))++)",
        hits=(
            "postgres://u:p@db.example/x",
            "postgresql://u:p@h/d",
            "MYSQL://root@h",
            "redis://:pw@h:6379/0",
            "mongodb+srv://u:p@c.example",
            "amqps://u:p@h",
        ),
        safe=("postgres is a database", "redis:6379", "https://example.com"),
    ),
    Rule(
        "api_key",
        "long",
        ("sk-",),
        ("sk-",),
        rf"sk-{_TOKEN}{{20,}}+",
        hits=("sk-abcdefghijklmnopqrst", "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz", "sk-proj-abcdefghijklmnopqrstuvwxyz0123"),
        safe=("sk-abcdefghijklmnopqrs", "sk-1", "task-list"),
    ),
    Rule(
        "api_key",
        "low",
        ("key", "token"),
        # Whole words: their beginnings stand in every path of an interface.
        ("apikey", "api_key", "api-key", "secretkey", "secret_key", "secret-key", "accesstoken", "access_token", "access-token", "authtoken", "auth_token",
         "auth-token"),
        r"(?i:(?:api[_-]?key|secret[_-]?key|access[_-]?token|auth[_-]?token)\s{0,16}+[=:]\s{0,16}+[\"']?[A-Za-z0-9_/+.\-]{32,}+[\"']?)",
        hits=("api_key = 0123456789abcdef0123456789abcdef", "ACCESS-TOKEN:'0123456789abcdef0123456789abcdef'"),
        safe=("api key and more", "the access_token: see the manual"),
    ),
    Rule(
        "bearer_token",
        "low",
        ("bearer",),
        ("authorization", "bearer"),
        r"(?i:(?:authorization:\s{0,16}+)?bearer\s{1,16}+[A-Za-z0-9_\-./+=]{20,}+)",
        hits=("Authorization: Bearer abcdefghijklmnopqrstuv", "bearer   0123456789abcdef0123"),
        safe=("the bearer of this letter", "Bearer short"),
    ),
    # Prefixes that vendors publish so that scanners find them.
    Rule(
        "github_token",
        "long",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        (),
        r"(?:gh[pousr]_[A-Za-z0-9]{36,255}+|github_pat_[A-Za-z0-9_]{22,255}+)",
        hits=("ghp_" + "a1B2" * 9, "x=ghs_" + "0" * 36, "github_pat_11AAAAAAA0" + "abcDEF_123" * 6),
        safe=("ghp_short", "github_pat_"),
    ),
    Rule(
        "gitlab_token",
        "long",
        ("glpat-", "gldt-", "glptt-", "glrt-", "glcbt-", "glsoat-", "glagent-"),
        (),
        rf"gl(?:pat|dt|ptt|rt|cbt|soat|agent)-{_TOKEN}{{20,}}+",
        hits=("glpat-" + "AbCdEfGh12" * 2, "glrt-" + "x" * 20),
        safe=("glpat-x",),
    ),
    Rule(
        "slack_token",
        "long",
        ("xoxb-", "xoxp-", "xoxa-", "xoxo-", "xoxe", "xoxs-", "xoxr-", "xapp-"),
        (),
        r"(?:xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9\-]{10,}+|xapp-[0-9]-[A-Za-z0-9\-]{10,}+)",
        hits=("xoxb-123456789012-abcdefABCDEF", "xapp-1-A0123456-0123456789-abcdef"),
        safe=("xoxb-", "xox is no word"),
    ),
    Rule(
        "webhook",
        "low",
        ("://",),
        ("hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", ".webhook.office.com/"),
        r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/|\.webhook\.office\.com/)([A-Za-z0-9_\-/@.]{16,}+)",
        1,
        hits=("https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",),
        safe=("https://hooks.slack.com/", "https://discord.com/api/webhooks/docs"),
    ),
    Rule(
        "stripe_key",
        "long",
        ("k_live_", "k_test_", "whsec_"),
        (),
        r"(?:(?<=[srp])k_(?:live|test)_[A-Za-z0-9]{10,}+|whsec_[A-Za-z0-9]{20,}+)",
        hits=("sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "rk_test_" + "4eC39HqLyjWDarjtT1zdp7dc"),
        safe=("sk_test_x", "check_test_abcdefghijklmnop"),
    ),
    Rule(
        "google_key",
        "long",
        ("AIza", "GOCSPX-", "ya29."),
        (),
        rf"(?:AIza{_TOKEN}{{35}}|GOCSPX-{_TOKEN}{{20,}}+|ya29\.{_TOKEN}{{20,}}+)",
        hits=("AIza" + "SyA-1234567" * 3 + "ab", "ya29." + "a0AfH6SM" * 4),
        safe=("AIzaShort", "ya29.x"),
    ),
    Rule(
        "token",
        "long",
        ("npm_", "pypi-AgEI", "hf_", "dop_v1_", "doo_v1_", "SG.", "shpat_", "shpss_", "shpca_", "shppa_", "hvs.", "hvb.", "dapi", "glsa_", "glc_",
         "lin_api_", "ntn_", "sntrys_", "nfp_", "sbp_", "gsk_", "xai-", "r8_", "pplx-", "figd_", "phx_", "tskey-", "ATATT3", "dckr_pat_", "dckr_oat_",
         "AGE-SECRET-KEY-1", "rubygems_", "pscale_", "PMAK-", "EAAC", "dp.pt.", "fm2_", "vercel_", "cio", "atlasv1."),
        (),
        r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:npm_[A-Za-z0-9]{36}|pypi-AgEI[A-Za-z0-9_\-]{40,}+|hf_[A-Za-z0-9]{30,}+|do[op]_v1_[a-f0-9]{64}|"
        r"SG\.[A-Za-z0-9_\-]{16,}+\.[A-Za-z0-9_\-]{16,}+|shp(?:at|ss|ca|pa)_[a-fA-F0-9]{32}|hv[sb]\.[A-Za-z0-9_\-]{20,}+|dapi[a-f0-9]{32}|"
        r"glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|glc_[A-Za-z0-9+/=]{32,}+|lin_api_[A-Za-z0-9]{32,}+|ntn_[A-Za-z0-9]{40,}+|sntrys_[A-Za-z0-9+/=_\-]{40,}+|"
        r"nfp_[A-Za-z0-9]{36,}+|sbp_[a-f0-9]{40}|gsk_[A-Za-z0-9]{40,}+|xai-[A-Za-z0-9]{40,}+|r8_[A-Za-z0-9]{37,}+|pplx-[A-Za-z0-9]{40,}+|"
        r"figd_[A-Za-z0-9_\-]{30,}+|phx_[A-Za-z0-9]{30,}+|tskey-[a-z]{2,12}-[A-Za-z0-9\-]{16,}+|ATATT3[A-Za-z0-9_\-=]{40,}+|dckr_[op]at_[A-Za-z0-9_\-]{20,}+|"
        r"AGE-SECRET-KEY-1[A-Z0-9]{50,}+|rubygems_[a-f0-9]{48}|pscale_(?:pw|tkn|oauth)_[A-Za-z0-9_.\-]{30,}+|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|EAAC[A-Za-z0-9]{60,}+|"
        r"dp\.pt\.[A-Za-z0-9]{40,}+|fm2_[A-Za-z0-9+/=_\-]{40,}+|cio[A-Za-z0-9]{32}(?![A-Za-z0-9]))",
        hits=(
            "npm_" + "aB3d" * 9,
            "see\\nnpm_" + "aB3d" * 9,
            "hf_" + "AbCdEf" * 6,
            "dop_v1_" + "0a" * 32,
            "SG." + "abcdefgh12" * 2 + "." + "abcdefgh12" * 4,
            "hvs." + "CAESIabcdefghijklmnop",
            "dapi" + "0123456789abcdef" * 2,
            "AGE-SECRET-KEY-1" + "QPZRY9X8GF" * 6,
            "gsk_" + "a1B2c3D4" * 6,
        ),
        safe=("npm_config_registry", "hf_hub_download", "dapi", "social_media_network_settings", "npm_lifecycle_event_is_a_variable_name"),
    ),
    Rule(
        "telegram_token",
        "long",
        ("AA",),
        (":AA",),
        r"(?<=[0-9]{8,10}):AA[A-Za-z0-9_\-]{32,34}(?![A-Za-z0-9_\-])",
        hits=("https://api.telegram.org/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0/getMe",),
        safe=("ratio 12345678:AA",),
    ),
    # Credentials by their place.
    Rule(
        "url_password",
        "low",
        ("://",),
        ("://",),
        r"://(?|[^\s/?#@:\"'<>\\\[]{0,256}+:(?!\$[A-Za-z_{(]|//)([^\s/?#\"'<>\\]{1,512})@|([A-Za-z0-9_\-]{20,256}+)(?::x-oauth-basic)?@)",
        1,
        hits=("git clone https://bob:hunter2@example.com/x.git", "ftp://u:p%40ss@h", "https://0123456789abcdef01234567@example.com"),
        safe=("https://example.com:8080/x@y", "https://bob@example.com", "https://user:$PASS@h", "http://a/b://c"),
    ),
    Rule(
        "authorization",
        "low",
        ("auth",),
        ("authorization",),
        rf"(?i:authorization(?:{_QUOTE}\]?)?\s{{0,8}}+[:=,]\s{{0,8}}+(?:{_QUOTE})?(?:(?:basic|token|digest|negotiate|apikey|key|bearer|aws4-hmac-sha256)\s{{1,8}}+)?){_REFERENCE}"
        r"((?=[^\s\"'`\\]*[0-9A-Z=+/])[^\s\"'`\\,;$]{8,8192}+)",
        1,
        hits=('curl -H "Authorization: Basic dXNlcjpwYXNzd29yZA==" https://x', "'Authorization': 'Token abc123def456'", "authorization: 0123456789abcdef"),
        safe=("Authorization: Bearer $TOKEN", "authorization: required", "Authorization is needed here: read on"),
    ),
    Rule(
        "cookie",
        "low",
        ("cookie",),
        ("cookie:",),
        r"(?i:cookie:\s{0,8}+)(?!\[REDACTED:)([A-Za-z0-9_.\-]{1,128}+=[^\r\n\"'\\]{8,8192}+)",
        1,
        hits=("curl -H 'Cookie: session=0123456789abcdef; theme=dark' https://x", "Set-Cookie: sid=abcdefghijkl; Path=/"),
        safe=("cookie: see below", "cookie: []"),
    ),
    Rule(
        "netrc",
        "low",
        ("pass",),
        ("password ",),
        r"(?i:(?<=login\s{1,8}\S{1,128}\s{1,8})password\s{1,8}+)(?!\[REDACTED:)((?:[^\s\\\"]|\"(?![,\]}])|\\(?!\\{0,14}[nr\"'])){1,512}+)",
        1,
        hits=("machine example.com login bob password hunter2",),
        safe=("the login page asks for a password twice",),
    ),
    Rule(
        "argument",
        "low",
        ("--",),
        ("pass", "token", "secret", "key"),
        r"(?i:(?<=--(?:[a-z0-9]{1,20}-){0,4})(?:pass(?:word|wd|phrase|code)?|token|secret)|(?<=--(?:[a-z0-9]{1,20}-){0,4}(?:api|secret|access|private|auth)-?)key)"
        rf"(?:=|[ \t]{{1,4}}+)(?:\\{{0,15}}[\"'])?{_REFERENCE}(?!-)([^\s\"'\\;|&<>()]{{3,4096}}+)",
        1,
        hits=("tool --password hunter2 --verbose", "tool --api-key=abc123", "--db-password 'hunter2'", "--client-secret=s3cr3t"),
        safe=("tool --password-stdin", "tool --token $TOKEN", "tool --password --verbose", "--no-secret"),
    ),
    Rule(
        "argument",
        "low",
        ("pass", "secret", "token"),
        (" pass:", "aws_secret_access_key ", "aws_session_token ", "echo ", "printf "),
        r"(?i:(?<=-pass(?:in|out)?) pass:|aws_(?:secret_access_key|session_token) {1,4}+(?=[A-Za-z0-9/+=]{20})|"
        # what is piped into a program that reads a password
        r"(?:echo|printf) {1,4}+(?:-[a-z]{1,3} {1,4}+)?(?:\\{0,15}[\"']%s(?:\\{1,8}n)?\\{0,15}[\"'] {1,4}+)?(?=[^\n|]{1,1024}+\|[^\n|;]{0,200}?(?:--(?:pass(?:word|phrase)?|token)-stdin|--with-token)\b))"
        rf"(?:\\{{0,15}}[\"'])?{_REFERENCE}([^\s\"'\\;|&<>()]{{3,1024}}+)",
        1,
        hits=(
            "openssl enc -aes-256-cbc -pass pass:hunter2 -in a",
            "aws configure set aws_secret_access_key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "echo 'hunter2' | docker login -u bob --password-stdin",
            "printf '%s' hunter2 | helm registry login r.example --password-stdin",
            "echo hunter2 | gh auth login --with-token",
        ),
        safe=("echo $PW | docker login -u bob --password-stdin", "echo done | tee log --password", "openssl rsa -passin env:PW", "the aws_secret_access_key is short"),
    ),
    Rule(
        "argument",
        "low",
        (" -",),
        (" -b ", " --cookie"),
        rf"(?<={_START}curl\b[^\n|;&]{{0,200}}) (?:-b|--cookie)[ =]{{1,4}}+(?:\\{{0,15}}[\"'])?{_REFERENCE}([A-Za-z0-9_.\-]{{1,128}}+=[^\r\n\"'\\|]{{8,8192}}+)",
        1,
        hits=("curl -b 'session=0123456789abcdef' https://x", "curl -s --cookie sid=0123456789abcdef https://x"),
        safe=("curl -b cookies.txt https://x", "git checkout -b name=of-a-branch"),
    ),
    Rule(
        "argument",
        "low",
        (" -",),
        (" -u", " --user", " --proxy-user"),
        r" (?:-u ?|--user[= ]|--proxy-user[= ]){1}\s{0,4}+(?:\\{0,15}[\"'])?(?![0-9]{1,6}:[0-9]{1,6}\b)[A-Za-z0-9_.@+\-]{1,128}+:"
        rf"{_REFERENCE}([^\s\"'\\]{{1,1024}}+)",
        1,
        hits=("curl -u bob:hunter2 https://x", "curl --user 'bob:hunter2' https://x"),
        safe=("docker run -u 1000:1000 x", "curl -u bob https://x", "curl -u bob:$PASS https://x"),
    ),
    Rule(
        "argument",
        "low",
        (" -",),
        (" -p", " -a ", " -w "),
        rf"(?:(?<={_START}(?:mysql|mariadb)[a-z\-]{{0,12}}(?:\s[^\n|;&]{{0,200}})?) -p|(?<={_START}sshpass) -p ?|(?<={_START}(?:7z|zip)\b[^\n|;&]{{0,200}}) -(?:p|P )|"
        rf"(?<={_START}(?:login|mongo[a-z]{{0,10}})\b[^\n|;&]{{0,200}}) -p[ =]|(?= -a )(?<={_START}redis-cli\b[^\n|;&]{{0,200}}) -a |(?= -w )(?<={_START}ldap[a-z]{{3,8}}\b[^\n|;&]{{0,200}}) -w )\s{{0,4}}+"
        rf"(?:\\{{0,15}}[\"'])?{_REFERENCE}([^\s\"'\\;|&<>()]{{3,512}}+)",
        1,
        hits=("sshpass -p hunter2 ssh h", "mysql -uroot -phunter2 db", "docker login -u bob -p hunter2 r.example", "redis-cli -h x -a hunter2 ping", "ldapsearch -D cn=admin -w hunter2 -b dc=x", '{"command":"cd x\\\\nmysql -phunter2"}', "cd\\\\n\\\\tsshpass -p hunter2"),
        safe=("mysql -u root db", "docker login -u bob --password-stdin", "sshpass -p $PW ssh h"),
    ),
    Rule(
        "assigned",
        "low",
        ("pass", "secret", "token", "cred", "key"),
        ("passw", "passphrase", "passcode", "secret", "token", "credential", "key"),
        rf"(?i:{_WORD}{_ABOUT}{_REST}(?:{_QUOTE})?\]?[ \t]{{0,8}}+(?::=|=>|[:=])(?![=~])[ \t]{{0,8}}+)(?|"
        # in quotes: anything without a blank in it, from three characters on
        rf"{_QUOTE}{_REFERENCE}(?i:{_CODE})([^\s\"'`\\]{{3,8192}}+)(?={_QUOTE})|"
        # bare: attached to `=` without blanks, or with a digit in it
        rf"(?<=[A-Za-z0-9_\-\"']=){_REFERENCE}(?i:{_CODE})([^\s\"'`\\,;&|<>(){{}}\[\]]{{3,8192}}+)|"
        rf"{_REFERENCE}(?i:{_CODE})((?=[^\s\"'`\\]{{0,256}}?[0-9])[^\s\"'`\\,;&|<>(){{}}\[\]]{{6,8192}}+)(?!\())",
        1,
        hits=(
            "export FOO_TOKEN=abcdef",
            "DB_PASSWORD='hunter2' ./run",
            '{"password": "hunter2"}',
            '{\\"client_secret\\": \\"abc123def\\"}',
            "password: hunter2",
            'os.environ["API_TOKEN"] = "abc123"',
            "secret=abc",
            "private_key: 0123abcdef",
            "https://x/?access_token=abc123&y=1",
        ),
        safe=(
            "token = get_token()",
            "password: str = None",
            "export FOO_TOKEN=$BAR",
            'export FOO_TOKEN="$(cat f)"',
            "def f(token: str, secret: Optional[str] = None)",
            "token=self.token",
            "if token == expected:",
            "the password: it is long",
            "keyword = 1234567",
            "max_tokens: 4096",
            "token=token",
            "monkey: banana1234",
            "TOKEN_URL=https://auth.example/token",
            "API_KEY_HEADER=X-Api-Key",
            "secretName: my-app-db-2",
            "token_count=1523",
        ),
    ),
    Rule(
        "assigned",
        "low",
        ("pass",),
        ("password", "passphrase"),
        rf"(?i:pass(?:word|phrase)[A-Za-z0-9_\-]{{0,16}}+(?:{_QUOTE})?[ \t]{{0,8}}+[:=][ \t]{{0,8}}+){_QUOTE}{_REFERENCE}([^\"'`\\\n]{{3,256}}+)(?={_QUOTE})",
        1,
        hits=('passphrase: "correct horse battery staple"',),
        safe=('password: ""', "password: 'ab'"),
    ),
    Rule(
        "assigned",
        "low",
        ("pass", "secret", "token", "cred", "key"),
        ("password>", "passwd>", "secret>", "token>", "key>", "value="),
        rf"(?i)(?|(?:password|passwd|passphrase|secret|token|(?:api|access|private|secret|account)[_\-]?key)>\s{{0,8}}+{_REFERENCE}([^<>\s]{{3,1024}}+)(?=\s{{0,8}}+</)|"
        rf"(?<=(?:key|name)=\\{{0,15}}[\"'][a-z0-9_.:\-]{{0,64}}(?:password|secret|token|(?:api|access|private|secret)[_\-]?key)\\{{0,15}}[\"'] {{1,8}})value={_QUOTE}{_REFERENCE}([^\"'\\<>\s]{{3,1024}}+)(?={_QUOTE}))",
        1,
        hits=("<password>hunter2</password>", '<add key="ApiSecret" value="hunter2"/>'),
        safe=("<password></password>", "List<Token> x = a</", "<Secret>$(PASSWORD)</Secret>"),
    ),
    # Variables of the environment by the last word of their name, and other names when the value is long and mixed.
    Rule(
        "assigned",
        "low",
        ("key", "auth", "pwd", "pass", "sig", "cred", "_pat="),
        ("key", "auth", "pwd", "pass", "sig", "cred", "pat="),
        rf"(?|(?<=[A-Z0-9]_)(?:AUTH|PAT|PWD|PASS|CREDS|KEY)=(?:\\{{0,15}}[\"'])?{_REFERENCE}(?![/~.])([^\s\"'\\;|&<>()$]{{6,8192}}+)|"
        rf"(?i:(?:key|auth|pwd|sig|signature|cred)(?:{_QUOTE})?\s{{0,4}}+[:=]\s{{0,4}}+(?:{_QUOTE})?)(?!\[REDACTED:)"
        r"((?=[^\s\"']{0,200}?[0-9])(?=[^\s\"']{0,200}?[a-z])(?=[^\s\"']{0,200}?[A-Z])[A-Za-z0-9+/_%=\-]{24,8192}+)(?![.(\w]))",
        1,
        hits=(
            "key=AbCdEf0123456789AbCdEf0123456789",
            "AccountKey=AbC0" + "dEfGh1/+" * 10 + "==",
            "export DEPLOY_KEY=0a1b2c3d4e5f",
            "GH_PAT='abcdef123456' make",
        ),
        safe=("key=abcdefghijklmnopqrstuvwxyz", "key: value", "key=/usr/share/keyrings/some-archive.gpg", "SSH_KEY=~/.ssh/id_ed25519", "OLD_PWD=$PWD"),
    ),
)  # fmt: skip


def freeze_rules(custom: Sequence[str] = (), without: Sequence[str] = ()) -> tuple[Row, ...]:
    """The rows that the hook uses. custom: a user's own patterns (label `custom`, run last); without: names of rules to leave out.

    Raises RuleError for a pattern that doesn't compile, matches the empty text or uses named lists.
    """
    left_out = frozenset(without)
    rows: list[Row] = []
    for rule in RULES:
        if rule.name not in left_out:
            frozen = None if rule.pattern is None else freeze(regex.compile(rule.pattern, regex.V0))
            rows.append((rule.name, rule.where, rule.gates, rule.anchors or rule.gates, frozen, rule.group))
    return (*rows, *_own(custom))


def _own(custom: Sequence[str]) -> Iterator[Row]:
    """Rows of a user's own patterns. Raises RuleError."""
    for text in custom:
        said = secret_problem(text, endless=True)  # running it is bounded
        if said is not None:
            raise RuleError(said)
        yield "custom", "any", (), (), freeze(regex.compile(text, regex.V0)), 0


def configured(folders: Folders) -> tuple[Row, ...]:
    """The rows for what is recorded or changed below these folders by commands: the hook's, with what config.toml adds and leaves out.

    Shipped patterns are compiled when a text first wants them. A config.toml that can't be used takes nothing away: then all shipped rules apply.
    Only a hook that can't be judged is stopped by it.
    """
    from guardhook.policy import config
    from guardhook.policy.layers import Loaded

    loaded = Loaded()
    config.read(folders, loaded)
    custom, without = loaded.secrets
    try:
        own = tuple(_own(custom))
    except RuleError:
        own, without = (), []
    return (*(_later(rule) for rule in RULES if rule.name not in without), *own)


def _later(rule: Rule) -> Row:
    return rule.name, rule.where, rule.gates, rule.anchors or rule.gates, rule.pattern, rule.group
