/* The registered command: starts the hook program and turns every way of not getting a verdict into the dialect's block.
 *
 * Dialect and mode come from this file's own name (`<dialect>.enforce`, `<dialect>.observe`), because some clients drop
 * arguments. The hook program is `../current/guardhook-hook` beside the folder that this file lies in. Its answer counts
 * only when it exits with an expected status and has written the byte `V` to descriptor 3; anything else (missing, killed,
 * crashed, hung, too much output) is answered from table.h, which build/launcher_table.py generates from the dialects.
 * Linked statically: nothing in LD_* can reach it. Its child gets a fresh environment made from an allow-list.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <limits.h>
#include <mach-o/dyld.h>
#else
#include <sys/syscall.h>
#endif

struct answer { const char *event; int exit; unsigned out_size, err_size; const char *out, *err; unsigned seen_size; const char *seen; };
struct dialect { const char *name; const struct answer *events; const int *statuses; int observe_answers; };
#include "table.h" /* DIALECTS (ends with a null name), RECOGNITION_ENV (ends with NULL) */

#ifndef SECONDS_ENFORCING
#define SECONDS_ENFORCING 4.0
#define SECONDS_OBSERVING 0.9
#endif
enum { OUT_CAP = 1 << 20, ERR_CAP = 1 << 16, PATH_CAP = 4096, VALUE_CAP = 4096 };
static const char SAFE_PATH[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
static const char NO_VERDICT[] = "guardhook: no verdict, so this is blocked (run `guardhook doctor`)\n";

extern char **environ;
static volatile sig_atomic_t child_changed, told_to_stop;
static const struct dialect *dialect;
static const char *event;
static int enforcing = 1, stdout_closed; /* until the name is known */
static pid_t child;

static void on_signal(int number) {
    if (number == SIGCHLD) child_changed = 1;
    else told_to_stop = 1;
}

/* Writes everything; waits where the descriptor is non-blocking. 0 when that worked. */
static int put(int fd, const char *data, size_t size) {
    while (size > 0) {
        ssize_t done = write(fd, data, size);
        if (done >= 0) { data += done; size -= (size_t)done; continue; }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd ready = {fd, POLLOUT, 0};
            if (poll(&ready, 1, 1000) <= 0) return -1;
        } else if (errno != EINTR) return -1;
    }
    return 0;
}

/* An answer that needs stdout and can't have it is no answer: the plain block takes its place. */
static void answer_and_exit(const char *out, size_t out_size, const char *err, size_t err_size, int status) {
    if (err_size > 0) put(2, err, err_size);
    if (out_size > 0 && (stdout_closed || put(1, out, out_size) != 0) && enforcing) {
        if (err_size == 0) put(2, NO_VERDICT, sizeof NO_VERDICT - 1);
        status = 2;
    }
    _exit(status);
}

static void no_verdict(void) {
    if (child > 0) kill(-child, SIGKILL);
    if (!enforcing && (dialect == NULL || !dialect->observe_answers)) _exit(0);
    if (dialect != NULL)
        for (const struct answer *row = dialect->events; row->event != NULL; row++)
            if (row->event[0] == 0 || (event != NULL && strcmp(row->event, event) == 0)) { /* the last row is for all others */
                if (!enforcing) answer_and_exit(row->seen, row->seen_size, "", 0, 0);
                answer_and_exit(row->out, row->out_size, row->err, row->err_size, row->exit);
            }
    if (!enforcing) _exit(0);
    answer_and_exit("", 0, NO_VERDICT, sizeof NO_VERDICT - 1, 2);
}

static void refuse(const char *why) {
    put(2, why, strlen(why));
    _exit(2);
}

/* This file's own path, never argv[0]: a caller chooses that freely. */
static int own_path(char *path) {
#ifdef __APPLE__
    char raw[PATH_CAP], real[PATH_MAX];
    uint32_t size = sizeof raw;
    if (_NSGetExecutablePath(raw, &size) != 0 || realpath(raw, real) == NULL || strlen(real) >= PATH_CAP) return -1;
    strcpy(path, real);
#else
    static const char deleted[] = " (deleted)"; /* replaced by an upgrade between our exec and this line */
    ssize_t size = readlink("/proc/self/exe", path, PATH_CAP - 1);
    if (size <= 0 || size >= PATH_CAP - 1) return -1;
    path[size] = 0;
    size_t tail = sizeof deleted - 1;
    if ((size_t)size > tail && strcmp(path + size - tail, deleted) == 0) path[(size_t)size - tail] = 0;
#endif
    return 0;
}

static int plain_word(const char *text) {
    size_t size = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return size > 0 && size <= 48 && text[size] == 0;
}

/* Locale names and time zones are opened as files by C libraries: only plain ones pass. */
static int plain_value(const char *value) {
    size_t size = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@+,-/");
    return value[size] == 0 && size < 128 && value[0] != '/' && strstr(value, "..") == NULL;
}

static int allowed(const char *entry) {
    const char *equals = strchr(entry, '=');
    if (equals == NULL || strlen(equals) > VALUE_CAP) return 0;
    size_t size = (size_t)(equals - entry);
    if (strncmp(entry, "LANG=", 5) == 0 || strncmp(entry, "TZ=", 3) == 0 || strncmp(entry, "LC_", 3) == 0)
        return plain_value(equals + 1);
    for (const char *const *name = RECOGNITION_ENV; *name != NULL; name++)
        if (strlen(*name) == size && strncmp(*name, entry, size) == 0) return 1;
    return 0;
}

/* A pipe whose ends are above the descriptors that the child uses, the read end non-blocking. */
static int make_pipe(int ends[2]) {
    int raw[2];
    if (pipe(raw) != 0) return -1;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(raw[i], F_DUPFD, 10);
        close(raw[i]);
        if (ends[i] < 0 || ends[i] >= FD_SETSIZE || fcntl(ends[i], F_SETFD, FD_CLOEXEC) != 0) return -1;
    }
    return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

struct stream { int fd; size_t size, cap; char *data; };

/* Reads what is there. -1 when the stream has more than its cap. */
static int take(struct stream *s) {
    while (s->fd >= 0) {
        ssize_t got = read(s->fd, s->data + s->size, s->cap + 1 - s->size);
        if (got > 0) { s->size += (size_t)got; if (s->size > s->cap) return -1; continue; }
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
        close(s->fd);
        s->fd = -1;
    }
    return 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void prepare_descriptors(void) {
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0) { /* lowest free number: open() puts it exactly there */
            if (fd == 1) stdout_closed = 1;
            if (open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd) _exit(2);
        }
#ifdef SYS_close_range
    syscall(SYS_close_range, 3U, ~0U, 0U); /* nothing that leaked into us reaches the hook program */
#endif
}

static void identify(char *path) {
    if (own_path(path) != 0) refuse("guardhook: the launcher can't find its own file, so this is blocked\n");
    char *name = strrchr(path, '/');
    char *mode = name == NULL ? NULL : strrchr(name, '.');
    if (mode != NULL) {
        *name++ = 0;
        *mode++ = 0;
        enforcing = strcmp(mode, "observe") != 0;
        if (!enforcing || strcmp(mode, "enforce") == 0)
            for (const struct dialect *row = DIALECTS; row->name != NULL; row++)
                if (strcmp(row->name, name) == 0) dialect = row;
    }
    if (dialect == NULL) refuse("guardhook: this launcher's file name is not `<dialect>.enforce` or `<dialect>.observe`, so this is blocked\n");
}

/* Ignores the signals that have no name, or gives them back their meaning. Some C libraries keep the first of them for
 * themselves, so the system is asked directly; all that follows the handler in its structure is zero.
 */
static void set_unnamed(int ignore) {
#ifdef SYS_rt_sigaction
    struct { void (*handler)(int); unsigned long rest[7]; } action = {ignore ? SIG_IGN : SIG_DFL, {0}};
    for (int number = 32; number <= 64; number++) syscall(SYS_rt_sigaction, number, &action, NULL, 8UL);
#else
    (void)ignore;
#endif
}

static void on_crash(int number) {
    (void)number;
    no_verdict();
}

/* Whatever would end this process without a word: being told to stop and a crash are answered, all other noise is ignored. */
static void catch_signals(sigset_t *waiting) {
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGALRM, SIGQUIT, SIGXCPU};
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};
    static const int noise[] = {
        SIGPIPE, SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF, SIGXFSZ,
#ifdef SIGIO
        SIGIO,
#endif
#ifdef SIGPWR
        SIGPWR,
#endif
#ifdef SIGSTKFLT
        SIGSTKFLT,
#endif
    };
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigset_t held;
    sigemptyset(&held);
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaddset(&held, numbers[i]);
    sigprocmask(SIG_SETMASK, &held, NULL); /* delivered only inside pselect */
    action.sa_handler = on_signal;
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &action, NULL);
    action.sa_handler = on_crash;
    action.sa_flags = SA_RESETHAND;
    for (unsigned i = 0; i < sizeof crashes / sizeof *crashes; i++) sigaction(crashes[i], &action, NULL);
    for (unsigned i = 0; i < sizeof noise / sizeof *noise; i++) signal(noise[i], SIG_IGN);
    set_unnamed(1);
    sigemptyset(waiting);
}

static void start(char *program, const int *out, const int *err, const int *verdict) {
    char *argv[10];
    int n = 0;
    argv[n++] = program;
    argv[n++] = "hook";
    if (event != NULL) argv[n++] = (char *)event;
    if (enforcing) argv[n++] = "--enforce";
    argv[n++] = "--dialect";
    argv[n++] = (char *)dialect->name;
    argv[n++] = "--verdict-fd";
    argv[n++] = "3";
    argv[n] = NULL;

    size_t count = 0;
    while (environ[count] != NULL) count++;
    char **clean = malloc((count + 2) * sizeof *clean);
    if (clean == NULL) no_verdict();
    size_t kept = 0;
    clean[kept++] = (char *)SAFE_PATH;
    for (size_t i = 0; i < count; i++)
        if (allowed(environ[i])) clean[kept++] = environ[i];
    clean[kept] = NULL;

    /* fork, not vfork or posix_spawn: with those this process could not act before the exec has gone through, and the
     * file may lie on a disk that hangs. */
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* until it has its own: the child must not answer in this process's place */
    child = fork();
    if (child != 0) sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0) {
        child = 0;
        no_verdict();
    }
    if (child > 0) {
        setpgid(child, child); /* here and there: whoever comes first */
        return;
    }
    setpgid(0, 0);
    for (int number = 1; number < 32; number++) signal(number, SIG_DFL);
    set_unnamed(0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(out[1], 1) == 1 && dup2(err[1], 2) == 2 && dup2(verdict[1], 3) == 3) execve(program, argv, clean);
    _exit(127);
}

/* Collects the streams until the child itself has ended; a grandchild that keeps them open is not waited for. */
static int wait_for_child(struct stream *streams, const sigset_t *waiting) {
    double deadline = now() + (enforcing ? SECONDS_ENFORCING : SECONDS_OBSERVING);
    for (;;) {
        int status, top = -1;
        int ended = child_changed ? (child_changed = 0, waitpid(child, &status, WNOHANG) == child) : 0;
        for (int i = 0; i < 3; i++)
            if (take(&streams[i]) != 0) no_verdict();
        if (ended) return status;
        double left = deadline - now();
        if (told_to_stop || left <= 0) no_verdict();
        fd_set set;
        FD_ZERO(&set);
        for (int i = 0; i < 3; i++)
            if (streams[i].fd >= 0) {
                FD_SET(streams[i].fd, &set);
                if (streams[i].fd > top) top = streams[i].fd;
            }
        struct timespec limit = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        if (pselect(top + 1, &set, NULL, NULL, &limit, waiting) < 0 && errno != EINTR) no_verdict();
    }
}

int main(int argc, char **argv) {
    static char path[PATH_CAP], program[PATH_CAP + 32], out_data[OUT_CAP + 1], err_data[ERR_CAP + 1], verdict_data[2];
    sigset_t waiting;
    int out[2], err[2], verdict[2];
    catch_signals(&waiting);
    prepare_descriptors();
    identify(path);
    if (argc > 1 && plain_word(argv[1])) event = argv[1];
    snprintf(program, sizeof program, "%s/../current/guardhook-hook", path);
    if (make_pipe(out) != 0 || make_pipe(err) != 0 || make_pipe(verdict) != 0) no_verdict();
    start(program, out, err, verdict);
    close(out[1]);
    close(err[1]);
    close(verdict[1]);
    struct stream streams[3] = {{out[0], 0, OUT_CAP, out_data}, {err[0], 0, ERR_CAP, err_data}, {verdict[0], 0, 1, verdict_data}};
    int status = wait_for_child(streams, &waiting);
    if (!WIFEXITED(status) || streams[2].size != 1 || verdict_data[0] != 'V') no_verdict();
    int expected = 0;
    for (const int *s = dialect->statuses; *s >= 0; s++) expected |= *s == WEXITSTATUS(status);
    if (!expected) no_verdict();
    if (!enforcing) answer_and_exit(out_data, dialect->observe_answers ? streams[0].size : 0, "", 0, 0);
    answer_and_exit(out_data, streams[0].size, err_data, streams[1].size, WEXITSTATUS(status));
}
