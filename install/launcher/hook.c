/* The hook program: a Python interpreter with the gate's modules inside, started without anything that a hook doesn't need.
 *
 * build/embed.py compiles the gate and the few codec modules that every interpreter needs, and links them in as frozen
 * modules. Nothing is read from the environment; nothing is searched outside this file's own folder, where the C
 * extensions lie. That makes a start faster than the bare interpreter's, which looks for its library first.
 *
 * The gate is some eighty modules, and the import system, which is written in Python, takes longer over each of them than
 * running it does. So `__import__` is a function here that knows what is inside and leaves everything else to the usual one.
 */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <marshal.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif
/* static const struct _frozen MODULES[], sorted by name; static const char *const EXTENSIONS[], which lie beside this
 * file as <name with / for .>.so; #define ENTRY "module" */
#include "frozen.h"

/* The interpreter's first phase alone, where its inner workings are known and can be linked. */
#define CORE_ONLY (LINKED_STATICALLY && PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000)

static int enforcing;
static char folder[PATH_MAX];
static PyObject *modules; /* sys.modules */
static PyObject *import_name(const char *name);

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

static const struct _frozen *inside(const char *name) {
    size_t low = 0, high = sizeof MODULES / sizeof *MODULES - 1; /* the last row ends the table */
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, MODULES[middle].name);
        if (order == 0) return &MODULES[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

/* Makes `name` an attribute of the package that it is in. */
static int hang_in(const char *name, PyObject *module) {
    const char *dot = strrchr(name, '.');
    if (dot == NULL) return 0;
    PyObject *parent = PyUnicode_FromStringAndSize(name, dot - name);
    PyObject *package = parent == NULL ? NULL : PyDict_GetItemWithError(modules, parent);
    Py_XDECREF(parent);
    return package == NULL ? -1 : PyObject_SetAttrString(package, dot + 1, module);
}

/* A borrowed reference, or NULL with an exception. */
static PyObject *run_frozen(const struct _frozen *found) {
    const char *name = found->name, *dot = strrchr(name, '.');
    char parent[256] = "";
    if (dot != NULL) {
        snprintf(parent, sizeof parent, "%.*s", (int)(dot - name), name);
        if (import_name(parent) == NULL) return NULL;
    }
    PyObject *module = PyImport_AddModule(name);
    if (module == NULL) return NULL;
    PyObject *space = PyModule_GetDict(module);
    PyObject *package = PyUnicode_FromString(found->is_package ? name : parent);
    PyObject *places = found->is_package ? PyList_New(0) : NULL;
    PyObject *code = found->get_code != NULL ? found->get_code() : PyMarshal_ReadObjectFromString((const char *)found->code, found->size);
    PyObject *result = NULL;
    if (package != NULL && code != NULL && PyDict_SetItemString(space, "__builtins__", PyEval_GetBuiltins()) == 0 &&
        PyDict_SetItemString(space, "__package__", package) == 0 &&
        (!found->is_package || (places != NULL && PyDict_SetItemString(space, "__path__", places) == 0)))
        result = PyEval_EvalCode(code, space, space);
    Py_XDECREF(package);
    Py_XDECREF(places);
    Py_XDECREF(code);
    if (result == NULL || hang_in(name, module) != 0) {
        PyObject *kind, *value, *trace;
        PyErr_Fetch(&kind, &value, &trace);
        PyDict_DelItemString(modules, name);
        PyErr_Restore(kind, value, trace);
        Py_XDECREF(result);
        return NULL;
    }
    Py_DECREF(result);
    return module;
}

/* As run_frozen, for C modules, built in or beside this file: what importlib does with one whose place is known. */
static PyObject *load_compiled(const char *name, const char *path) {
    PyObject *imp = PyImport_ImportModule("_imp"), *kind = PySys_GetObject("implementation");
    PyObject *facts = Py_BuildValue("{s:s,s:s}", "name", name, "origin", path == NULL ? "built-in" : path), *none = PyTuple_New(0);
    PyObject *spec = facts == NULL || none == NULL || kind == NULL ? NULL : PyObject_Call((PyObject *)Py_TYPE(kind), none, facts);
    PyObject *module = NULL, *done = NULL;
    if (spec != NULL && imp != NULL) module = PyObject_CallMethod(imp, path == NULL ? "create_builtin" : "create_dynamic", "O", spec);
    if (module != NULL && path != NULL) {
        PyObject *where = PyUnicode_FromString(path);
        if (where == NULL || PyObject_SetAttrString(module, "__file__", where) != 0) Py_CLEAR(module);
        Py_XDECREF(where);
    }
    if (module != NULL && PyDict_SetItemString(modules, name, module) == 0)
        done = PyObject_CallMethod(imp, path == NULL ? "exec_builtin" : "exec_dynamic", "O", module);
    Py_XDECREF(imp);
    Py_XDECREF(facts);
    Py_XDECREF(none);
    Py_XDECREF(spec);
    if (done == NULL || hang_in(name, module) != 0) return NULL;
    Py_DECREF(done);
    Py_DECREF(module); /* sys.modules has it */
    return module;
}

static PyObject *load_extension(const char *name) {
    char path[PATH_MAX];
    int used = snprintf(path, sizeof path, "%s/%s.so", folder, name);
    if (used < 0 || (size_t)used >= sizeof path) return NULL;
    for (char *dot = path + strlen(folder) + 1; *dot != 0 && strcmp(dot, ".so") != 0; dot++)
        if (*dot == '.') *dot = '/';
    return load_compiled(name, path);
}

/* The module of that name if it is one of ours: borrowed; NULL without an exception if it isn't. */
static PyObject *import_name(const char *name) {
    PyObject *there = PyDict_GetItemString(modules, name);
    if (there != NULL) return there;
    const struct _frozen *found = inside(name);
    if (found != NULL) return run_frozen(found);
    for (const char *const *extension = EXTENSIONS; *extension != NULL; extension++)
        if (strcmp(*extension, name) == 0) return load_extension(name);
    for (const struct _inittab *row = PyImport_Inittab; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0) return load_compiled(name, NULL);
    return NULL;
}

static PyObject *import(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"name", "globals", "locals", "fromlist", "level", NULL};
    PyObject *name, *globals = NULL, *locals = NULL, *wanted = NULL;
    int level = 0;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "U|OOOi:__import__", words, &name, &globals, &locals, &wanted, &level))
        return NULL;
    const char *text = PyUnicode_AsUTF8(name);
    PyObject *module = text == NULL || level != 0 ? NULL : import_name(text);
    if (module == NULL && PyErr_Occurred()) return NULL;
    if (module != NULL && wanted != NULL && PyTuple_Check(wanted)) {
        char whole[256];
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(wanted); i++) {
            const char *part = PyUnicode_AsUTF8(PyTuple_GET_ITEM(wanted, i));
            if (part == NULL) return NULL;
            if (PyObject_HasAttr(module, PyTuple_GET_ITEM(wanted, i))) continue;
            if ((size_t)snprintf(whole, sizeof whole, "%s.%s", text, part) >= sizeof whole) continue;
            if (import_name(whole) == NULL && PyErr_Occurred()) return NULL;
        }
    }
    if (module != NULL && ((wanted != NULL && wanted != Py_None) || strchr(text, '.') == NULL)) {
        Py_INCREF(module);
        return module;
    }
    return PyImport_ImportModuleLevelObject(name, globals, locals, wanted, level);
}

static PyMethodDef IMPORT = {"__import__", (PyCFunction)(void (*)(void))import, METH_VARARGS | METH_KEYWORDS, NULL};

#if CORE_ONLY
/* The interpreter's second phase makes what a hook never uses: streams for stdin, stdout and stderr, codecs written in Python, and
 * importers that search folders and archives. It takes as long as the gate itself, so it is left out. What else comes of that phase
 * and is used stands here: the signal module's constants, and what `sys` tells of the process. Codecs are still found when
 * one is asked for, since CODECS (build/embed.py) are frozen modules.
 */
extern int _PySignal_Init(int install_signal_handlers);

static void tell_sys(int argc, char **argv, const wchar_t *own, const wchar_t *home) {
    PyObject *words = PyList_New(0), *program = PyUnicode_FromWideChar(own, -1), *place = PyUnicode_FromWideChar(home, -1);
    PyObject *places = place == NULL ? NULL : Py_BuildValue("[O]", place);
    if (words == NULL || program == NULL || places == NULL) fail("out of memory");
    for (int i = 0; i < argc; i++) {
        PyObject *word = PyUnicode_DecodeUTF8(argv[i], (Py_ssize_t)strlen(argv[i]), "surrogateescape");
        if (word == NULL || PyList_Append(words, word) != 0) fail("out of memory");
    }
    if (PySys_SetObject("argv", words) != 0 || PySys_SetObject("executable", program) != 0 || PySys_SetObject("path", places) != 0)
        fail("out of memory");
}
#endif

int main(int argc, char **argv) {
    static char path[PATH_MAX];
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
#if CORE_ONLY
    config._init_main = 0;
    check(Py_InitializeFromConfig(&config));
    if (_PySignal_Init(0) != 0) fail("signals can't be set up");
    tell_sys(argc, argv, own, home);
#else
    check(Py_InitializeFromConfig(&config));
#endif

    PyObject *shipped = PyUnicode_FromWideChar(home, -1);
    if (shipped == NULL || PySys_SetObject("frozen", Py_True) != 0 || PySys_SetObject("_MEIPASS", shipped) != 0) fail("out of memory");
    PyGC_Disable(); /* a process of some milliseconds leaves no garbage worth looking for */
    modules = PyImport_GetModuleDict();
    PyObject *own_import = PyCFunction_New(&IMPORT, NULL);
    if (own_import == NULL || PyDict_SetItemString(PyEval_GetBuiltins(), "__import__", own_import) != 0) fail("out of memory");
    PyObject *entry = import_name(ENTRY);
    if (entry != NULL) PyObject_CallMethod(entry, "main", NULL); /* ends the process */
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *text = value == NULL ? NULL : PyObject_Str(value);
    const char *why = text == NULL ? NULL : PyUnicode_AsUTF8(text);
    fail(why == NULL ? "the gate ended without an answer" : why);
    return 2;
}
