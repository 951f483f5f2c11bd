/* The hook program: a Python interpreter with the gate's modules inside, started without anything that a hook doesn't need.
 *
 * build/embed.py compiles the gate and the few codec modules that every interpreter needs, and links them in as frozen
 * modules. Nothing is read from the environment; nothing is searched outside this file's own folder, where the C
 * extensions lie. That makes a start faster than the bare interpreter's, which looks for its library first.
 */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif
#include "frozen.h" /* static const struct _frozen MODULES[]; #define ENTRY "module" */

static int enforcing;

/* As for the gate's own faults: enforcing blocks with one line, observing says nothing. */
static void fail(const char *why) {
    static const char before[] = "guardhook: blocked, the hook program can't start (", after[] = ")\n";
    if (!enforcing) _exit(0);
    if (write(2, before, sizeof before - 1) < 0 || write(2, why, strlen(why)) < 0 || write(2, after, sizeof after - 1) < 0) _exit(2);
    _exit(2);
}

static void check(PyStatus status) {
    if (PyStatus_Exception(status)) fail(status.err_msg != NULL ? status.err_msg : "unknown error");
}

static void own_path(char *path, size_t size) {
#ifdef __APPLE__
    uint32_t room = (uint32_t)size;
    char raw[PATH_MAX];
    if (_NSGetExecutablePath(raw, &room) != 0 || realpath(raw, path) == NULL) fail("its own path is unknown");
#else
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0 || (size_t)length >= size - 1) fail("its own path is unknown");
    path[length] = 0;
#endif
}

/* A crash is answered by the launcher; without one (an old client that drops arguments) it is answered here. */
static void crashed(int number) {
    (void)number;
    fail("it crashed");
}

int main(int argc, char **argv) {
    static char path[PATH_MAX], folder[PATH_MAX];
    enforcing = argc < 2;
    for (int i = 1; i < argc; i++) enforcing |= strcmp(argv[i], "--enforce") == 0;
    signal(SIGSEGV, crashed);
    signal(SIGBUS, crashed);
    signal(SIGABRT, crashed);
    own_path(path, sizeof path);
    strcpy(folder, path);
    *strrchr(folder, '/') = 0;

    PyPreConfig before;
    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1; /* whatever the locale says, paths and streams are UTF-8 */
    check(Py_PreInitialize(&before));
    PyImport_FrozenModules = MODULES;

    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.site_import = 0;
    config.write_bytecode = 0;
    config.install_signal_handlers = 0;
    config.pathconfig_warnings = 0;
    config.parse_argv = 0;
    config.optimization_level = 2;
    wchar_t *own = Py_DecodeLocale(path, NULL), *home = Py_DecodeLocale(folder, NULL);
    if (own == NULL || home == NULL) fail("its own path is not text");
    wchar_t **places[] = {&config.prefix, &config.exec_prefix, &config.base_prefix, &config.base_exec_prefix, &config.home};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) check(PyConfig_SetString(&config, places[i], home));
    wchar_t **names[] = {&config.executable, &config.base_executable, &config.program_name};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check(PyConfig_SetString(&config, names[i], own));
    config.module_search_paths_set = 1;
    check(PyWideStringList_Append(&config.module_search_paths, home));
    check(PyConfig_SetBytesArgv(&config, argc, argv));
    check(Py_InitializeFromConfig(&config));

    PyObject *shipped = PyUnicode_FromWideChar(home, -1);
    if (shipped == NULL || PySys_SetObject("frozen", Py_True) != 0 || PySys_SetObject("_MEIPASS", shipped) != 0) fail("out of memory");
    PyObject *entry = PyImport_ImportModule(ENTRY);
    if (entry != NULL) PyObject_CallMethod(entry, "main", NULL); /* ends the process */
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *text = value == NULL ? NULL : PyObject_Str(value);
    const char *why = text == NULL ? NULL : PyUnicode_AsUTF8(text);
    fail(why == NULL ? "the gate ended without an answer" : why);
    return 2;
}
