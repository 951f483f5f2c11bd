"""Which calls of scripting languages do what. One row per name; `*.name` means any receiver.

Actions: shell (a command line, or a list), argv (program and arguments), eval, delete, delete-tree, rmdir, read, write,
open (by its mode), chmod, chown, move, copy, connect, upload, print, kill, load, setuid.
"""

from __future__ import annotations


def _rows(action: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), action)


_PYTHON = {
    **_rows("shell", "os.system os.popen subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen subprocess.getoutput subprocess.getstatusoutput commands.getoutput popen2.popen2 pty.spawn asyncio.create_subprocess_shell pexpect.spawn pexpect.run posix.system nt.system sh.bash sarge.run invoke.run fabric.local delegator.run plumbum.local"),
    **_rows("argv", "os.execv os.execve os.execvp os.execvpe os.execl os.execlp os.execle os.execlpe os.spawnl os.spawnv os.spawnlp os.spawnvp os.posix_spawn os.posix_spawnp asyncio.create_subprocess_exec"),
    **_rows("eval", "exec eval runpy.run_path execfile builtins.exec builtins.eval code.interact __builtins__.exec __builtins__.eval"),
    **_rows("delete", "os.remove os.unlink send2trash.send2trash posix.unlink"), **_rows("delete-tree", "shutil.rmtree distutils.dir_util.remove_tree"), **_rows("rmdir", "os.rmdir os.removedirs"),
    **_rows("open", "open io.open codecs.open builtins.open os.fdopen gzip.open"), **_rows("write", "os.truncate os.mkdir os.makedirs os.mknod"), **_rows("read", "os.readlink linecache.getlines fileinput.input"),
    **_rows("chmod", "os.chmod os.lchmod os.fchmod"), **_rows("chown", "os.chown os.lchown shutil.chown"), **_rows("move", "os.rename os.replace os.renames shutil.move"), **_rows("copy", "shutil.copy shutil.copy2 shutil.copyfile shutil.copytree os.link os.symlink"),
    **_rows("connect", "urllib.request.urlopen urllib.urlopen urllib2.urlopen urllib.request.urlretrieve requests.get requests.head requests.request httpx.get httpx.request httpx.stream urlopen aiohttp.request socket.create_connection *.create_connection *.urlopen *.urlretrieve requests.Session.get wget.download session.get client.get urllib3.request http.client.HTTPSConnection http.client.HTTPConnection s.connect sock.connect *.connect socket.gethostbyname ftplib.FTP paramiko.SSHClient"),
    **_rows("upload", "requests.post requests.put requests.patch requests.delete httpx.post httpx.put httpx.patch session.post client.post *.sendmail *.upload_file *.put_object *.storbinary *.send_message"),
    **_rows("print", "print sys.stdout.write"), **_rows("kill", "os.kill os.killpg"), **_rows("load", "marshal.loads pickle.loads ctypes.CDLL imp.load_source importlib.util.spec_from_file_location"), **_rows("setuid", "os.setuid os.seteuid os.setreuid os.setresuid os.setgid"),
}  # fmt: skip
_NODE = {
    **_rows("shell", "child_process.exec child_process.execSync child_process.spawn child_process.spawnSync child_process.execFile child_process.execFileSync child_process.fork *.execSync *.spawnSync *.execFileSync execSync spawnSync execFileSync spawn execFile shell.exec shelljs.exec execa execaCommand execaSync execaCommandSync Bun.spawn Bun.spawnSync Deno.run Deno.Command Bun.$ zx.$ cp.exec cp.spawn childProcess.exec childProcess.spawn cp.execFile exec"),
    **_rows("eval", "eval Function vm.runInThisContext vm.runInNewContext vm.runInContext *.runInThisContext *.runInNewContext"),
    **_rows("delete", "fs.unlink fs.unlinkSync fs.promises.unlink fs/promises.unlink *.unlinkSync unlinkSync Deno.remove Deno.removeSync fsPromises.unlink fs.rm fs.rmSync fs.promises.rm fs/promises.rm *.rmSync rmSync fsPromises.rm promises.rm promises.unlink"),
    **_rows("delete-tree", "fs.remove fs.removeSync fs-extra.remove fs-extra.removeSync rimraf rimraf.sync rimrafSync *.removeSync del fs.emptyDirSync fs.emptyDir"), **_rows("rmdir", "fs.rmdir fs.rmdirSync *.rmdirSync fs.promises.rmdir rmdirSync"),
    **_rows("write", "fs.writeFile fs.writeFileSync fs.appendFile fs.appendFileSync fs.createWriteStream fs.promises.writeFile fs/promises.writeFile *.writeFileSync *.appendFileSync writeFileSync appendFileSync Deno.writeTextFile Deno.writeTextFileSync Bun.write fs.truncateSync fs.mkdirSync *.createWriteStream fsPromises.writeFile promises.writeFile fs.outputFileSync"),
    **_rows("read", "fs.readFile fs.readFileSync fs.createReadStream fs.promises.readFile fs/promises.readFile *.readFileSync readFileSync Deno.readTextFile Deno.readTextFileSync Bun.file *.createReadStream promises.readFile"),
    **_rows("chmod", "fs.chmod fs.chmodSync *.chmodSync fs.promises.chmod"), **_rows("chown", "fs.chown fs.chownSync *.chownSync"), **_rows("move", "fs.rename fs.renameSync *.renameSync fs.promises.rename fs.move fs.moveSync"), **_rows("copy", "fs.copyFile fs.copyFileSync fs.cp fs.cpSync *.copyFileSync fs.symlinkSync fs.linkSync fs.copySync"),
    **_rows("connect", "fetch http.get https.get http.request https.request axios axios.get got node-fetch net.connect net.createConnection tls.connect dns.lookup WebSocket *.createConnection request request.get dns.resolve got.get undici.fetch undici.request"), **_rows("upload", "axios.post axios.put got.post request.post navigator.sendBeacon"),
    **_rows("print", "console.log process.stdout.write console.error"), **_rows("kill", "process.kill"), **_rows("setuid", "process.setuid process.seteuid"),
    **_rows("named", "Deno.Command Deno.run"),
}  # fmt: skip
_PERL = {
    **_rows("shell", "system exec open3 open2 IPC.Open3.open3 capture run qx syscall"), **_rows("eval", "eval do"), **_rows("delete", "unlink"), **_rows("delete-tree", "rmtree remove_tree File.Path.rmtree File.Path.remove_tree *.remove_tree *.rmtree"), **_rows("rmdir", "rmdir"),
    **_rows("open", "open sysopen"), **_rows("chmod", "chmod"), **_rows("chown", "chown"), **_rows("move", "rename move File.Copy.move"), **_rows("copy", "copy cp symlink link File.Copy.copy"), **_rows("write", "mkdir truncate"),
    **_rows("connect", "get getstore LWP.Simple.get LWP.Simple.getstore IO.Socket.INET.new INET.new *.get"), **_rows("upload", "*.post"), **_rows("print", "print printf say"), **_rows("kill", "kill"),
}  # fmt: skip
_RUBY = {
    **_rows("shell", "system exec spawn IO.popen Kernel.system Kernel.exec Kernel.spawn Open3.capture2 Open3.capture3 Open3.capture2e Open3.popen3 Open3.popen2 Process.spawn PTY.spawn popen Kernel.` Open3.pipeline sh"),
    **_rows("eval", "eval instance_eval class_eval Kernel.eval module_eval *.instance_eval Kernel.load load"), **_rows("delete", "File.delete File.unlink FileUtils.rm FileUtils.rm_f FileUtils.remove FileUtils.safe_unlink Pathname.delete"), **_rows("delete-tree", "FileUtils.rm_rf FileUtils.rm_r FileUtils.rmtree FileUtils.remove_dir FileUtils.remove_entry FileUtils.remove_entry_secure rm_rf rm_r"), **_rows("rmdir", "Dir.rmdir Dir.delete Dir.unlink FileUtils.rmdir"),
    **_rows("write", "File.write IO.write FileUtils.touch FileUtils.mkdir_p Dir.mkdir File.truncate IO.binwrite File.binwrite"), **_rows("open", "File.open open File.new URI.open"), **_rows("read", "File.read IO.read File.readlines IO.readlines File.foreach File.binread"),
    **_rows("chmod", "File.chmod FileUtils.chmod FileUtils.chmod_R"), **_rows("chown", "File.chown FileUtils.chown FileUtils.chown_R"), **_rows("move", "File.rename FileUtils.mv FileUtils.move"), **_rows("copy", "FileUtils.cp FileUtils.copy FileUtils.cp_r FileUtils.ln_s File.symlink FileUtils.install"),
    **_rows("connect", "Net.HTTP.get URI.open Net.HTTP.get_response HTTParty.get Faraday.get RestClient.get TCPSocket.new TCPSocket.open Net.HTTP.start HTTP.get Excon.get"), **_rows("upload", "Net.HTTP.post Net.HTTP.post_form HTTParty.post Faraday.post RestClient.post HTTP.post"), **_rows("print", "puts print p printf"), **_rows("kill", "Process.kill"),
}  # fmt: skip
_PHP = {
    **_rows("shell", "system exec shell_exec passthru popen proc_open pcntl_exec"), **_rows("eval", "eval assert create_function include require include_once require_once"), **_rows("delete", "unlink"), **_rows("rmdir", "rmdir"), **_rows("write", "file_put_contents touch mkdir ftruncate"), **_rows("open", "fopen"),
    **_rows("read", "file_get_contents readfile file show_source highlight_file"), **_rows("chmod", "chmod"), **_rows("chown", "chown"), **_rows("move", "rename"), **_rows("copy", "copy symlink link"), **_rows("connect", "curl_init fsockopen stream_socket_client curl_exec dns_get_record"), **_rows("upload", "mail"), **_rows("print", "echo print printf print_r var_dump"), **_rows("kill", "posix_kill"), **_rows("setuid", "posix_setuid"),
}  # fmt: skip
_LUA = {
    **_rows("shell", "os.execute io.popen"),
    **_rows("eval", "load loadstring dofile"),
    **_rows("delete", "os.remove"),
    **_rows("move", "os.rename"),
    **_rows("open", "io.open"),
    **_rows("print", "print io.write"),
}
_R = {
    **_rows("shell", "system system2 shell"),
    **_rows("delete", "unlink file.remove"),
    **_rows("eval", "eval source"),
    **_rows("write", "writeLines file.create"),
    **_rows("connect", "download.file url httr.GET"),
    **_rows("upload", "httr.POST"),
    **_rows("print", "print cat"),
}
_JULIA = {
    **_rows("shell", "run Base.run"),
    **_rows("delete-tree", "rm Base.rm"),
    **_rows("eval", "eval include"),
    **_rows("open", "open"),
    **_rows("print", "print println"),
    **_rows("connect", "download Downloads.download HTTP.get"),
    **_rows("upload", "HTTP.post"),
}
_ELIXIR = {
    **_rows("argv", "System.cmd"),
    **_rows("shell", "System.shell os.cmd"),
    **_rows("delete-tree", "File.rm_rf File.rm_rf!"),
    **_rows("delete", "File.rm File.rm!"),
    **_rows("write", "File.write File.write!"),
    **_rows("read", "File.read File.read!"),
    **_rows("eval", "Code.eval_string"),
    **_rows("print", "IO.puts"),
}
_GROOVY = {
    **_rows("eval", "Eval.me evaluate"),
    **_rows("print", "println print"),
    **_rows("shell", "Runtime.exec *.exec"),
}
_TABLES = {
    "python": _PYTHON,
    "node": _NODE,
    "perl": _PERL,
    "ruby": _RUBY,
    "php": _PHP,
    "lua": _LUA,
    "r": _R,
    "julia": _JULIA,
    "elixir": _ELIXIR,
    "groovy": _GROOVY,
    "tcl": _rows("shell", "exec spawn"),
}


def of(language: str) -> dict[str, str]:
    """The rows of a language; none for one that isn't known."""
    return _TABLES.get(language, {})


# Methods of path objects (Python's pathlib, Ruby's Pathname): effect kind and flags.
PATH_METHODS = {
    "unlink": ("delete", ("inline",)), "rmdir": ("delete", ("inline", "empty-only")), "rmtree": ("delete", ("inline", "recursive", "force")), "write_text": ("write", ("inline", "truncate")), "write_bytes": ("write", ("inline", "truncate")), "touch": ("write", ("inline", "append")),
    "rename": ("move", ()), "replace": ("move", ()), "chmod": ("chmod", ("inline",)), "read_text": ("read", ()), "read_bytes": ("read", ()), "symlink_to": ("write", ("inline", "link")), "hardlink_to": ("write", ("inline", "link")), "mkdir": ("write", ("inline", "mkdir")), "delete": ("delete", ("inline",)),
}  # fmt: skip

DECODERS = frozenset((
    "b64decode", "decode64", "base64_decode", "atob", "decode_base64", "fromhex", "unhexlify", "hex2bin", "decompress", "gzinflate", "inflate", "gunzipSync", "inflateSync", "unpack", "b32decode", "b85decode", "a85decode", "urlsafe_b64decode", "str_rot13", "strict_decode64", "decodebytes", "gzuncompress",
))  # fmt: skip
FETCHERS = frozenset(
    (
        "urlopen",
        "urlretrieve",
        "fetch",
        "requests",
        "httpx",
        "getstore",
        "HTTParty",
        "RestClient",
        "Faraday",
        "axios",
        "curl_exec",
        "urllib",
        "URI",
        "recv",
        "LWP",
    )
)

# Names that tell a raw connection whose ends are handed to a program.
STREAMS = frozenset(("fsockopen", "stream_socket_client"))
SOCKETS = frozenset(("socket", "TCPSocket", "Socket", "createConnection", "net"))
HANDED_OVER = frozenset(
    (
        "dup2",
        "pty",
        "fileno",
        "pipe",
        "proc_open",
        "STDIN",
        "spawn",
        "popen",
        "PeerAddr",
        "fdopen",
        "gets",
        "recv",
        "stdin",
    )
)
CONNECTED = frozenset(
    ("connect", "create_connection", "createConnection", "TCPSocket", "open", "Socket", "inet_aton", "INET")
)
# Functions that call a function given by its name.
HANDING = frozenset(("array_map", "call_user_func", "call_user_func_array", "array_walk"))
# Functions and methods that give what lies below a folder.
LISTING = frozenset(
    (
        "walk",
        "fwalk",
        "scandir",
        "listdir",
        "iterdir",
        "rglob",
        "readdirSync",
        "readdir",
        "children",
        "each_child",
        "entries",
        "find",
    )
)
# Methods by which database libraries take a statement.
STATEMENTS = frozenset(
    ("execute", "executescript", "executemany", "query", "raw", "queryRaw", "executeRaw", "exec_sql")
)
