/* emulate.cpp - the scheduler of fibers behind emulate.h. */
#include "cuda_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define HAS_FAKE_STACKS() (__asan_get_current_fake_stack() != nullptr)
#define SWITCH_START(keep, bottom, size) __sanitizer_start_switch_fiber(keep, bottom, size)
#define SWITCH_END(keep, bottom, size) __sanitizer_finish_switch_fiber(keep, bottom, size)
#else
#define HAS_FAKE_STACKS() false
#define SWITCH_START(keep, bottom, size) ((void)(keep), (void)(bottom), (void)(size))
#define SWITCH_END(keep, bottom, size) ((void)(keep), (void)(bottom), (void)(size))
#endif

#if defined(__x86_64__)
/* Switching is most of the work here, and swapcontext asks the kernel for signal masks each time:
 * this keeps what a function has to keep and turns to the other stack. */
extern "C" void fth_emulate_switch(void **keep, void *to);
__asm__(".text\n"
        ".hidden fth_emulate_switch\n"
        ".globl fth_emulate_switch\n"
        ".type fth_emulate_switch,@function\n"
        "fth_emulate_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size fth_emulate_switch,.-fth_emulate_switch\n");
typedef void *context;
static void turn(context *from, context *to)
{
    fth_emulate_switch(from, *to);
}
static void begin(context *c, char *stack, size_t size, void (*run)())
{
    void **top = reinterpret_cast<void **>(stack + size) - 2; /* calls leave it off by 8 */
    *top = reinterpret_cast<void *>(run);
    top[1] = nullptr; /* whoever looks for callers stops here */
    *c = top - 6;     /* registers, of any value */
    for (int i = 1; i <= 6; i++) top[-i] = nullptr;
}
#else
#include <ucontext.h>
typedef ucontext_t context;
static void turn(context *from, context *to)
{
    swapcontext(from, to);
}
static void begin(context *c, char *stack, size_t size, void (*run)())
{
    getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = size;
    makecontext(c, run, 0);
}
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace
{

/* Stacks do not lie at the same place of their pages: the tops of all would compete for the same
 * few lines of the cache. */
enum { STACK = 128 << 10, STEP = STACK + 17 * 64, WARP = 32, MOST = 1024 };
const size_t ALL_STACKS = size_t{MOST + 1} * STEP;
const uint64_t UNTOUCHED = 0x5AFE5AFE5AFE5AFEu; /* at the far end of each */

/* What each switch does is inlined, and what few do is not. */
#define FAST inline __attribute__((always_inline))
#define SELDOM __attribute__((noinline))

struct fiber;

/* One thread of the block. */
struct thread {
    uint64_t value, result;
    emulate::meeting what;
    unsigned mask;
    int from;
    fiber *runner; /* that runs it; NULL: not begun */
};

/* Lanes of a warp, a bit each: those that can go on, wait for lanes, have ended; the others wait
 * for the block, or look again when nobody else can go on. Those that wait mostly do so for the
 * same, which spares looking at each. */
struct warp {
    unsigned all, ready, waiting, ended, looking;
    unsigned mask; /* and what, of the first that waits */
    emulate::meeting what;
    bool mixed;
};

struct fiber {
    context place;
    char *stack;
    int thread; /* that it runs now, or is to run */
    void *fake; /* the address sanitizer's */
};

context home;
void *home_fake;
const void *home_bottom;
size_t home_size;
bool from_home, has_fake_stacks;
char *stacks; /* of all fibers */
std::vector<fiber *> fibers, idle;
thread threads[MOST];
uint3 places[MOST]; /* threadIdx of each, in blocks of more than one axis */
warp warps[MOST / WARP];
fiber *starting;
int n_threads, now;
int ended, at_block, yes_votes; /* threads of the block */
int votes, present;             /* what the last barrier found */
bool backwards, was_refused;
uint64_t launches;
int looks; /* of all that look, with nobody else going on in between */
void (*body)(void *);
void *arg;

[[noreturn]] void stop(const char *why)
{
    fprintf(stderr, "emulated kernel: %s (block %u %u %u, thread %d of %d)\n", why, blockIdx.x,
            blockIdx.y, blockIdx.z, now, n_threads);
    abort();
}

FAST void be(int t)
{
    now = t;
    threadIdx.x = (unsigned)t;
    if (blockDim.x != (unsigned)n_threads) threadIdx = places[t];
}

void find_places()
{
    if (blockDim.x == (unsigned)n_threads) return;
    for (unsigned t = 0; t < (unsigned)n_threads; t++)
        places[t] = uint3{t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
}

/* ---- meetings ---- */

void find_outcomes(thread *lane, unsigned group, emulate::meeting what)
{
    if (what == emulate::SYNC) return;
    if (what == emulate::SHUFFLE) {
        for (unsigned g = group; g; g &= g - 1) {
            thread &me = lane[__builtin_ctz(g)];
            me.result = group >> me.from & 1u ? lane[me.from].value : 0xA5A5A5A5A5A5A5A5u;
        }
        return;
    }
    uint64_t voted = 0;
    if (what == emulate::BALLOT)
        for (unsigned g = group; g; g &= g - 1)
            if (lane[__builtin_ctz(g)].value) voted |= g & -g;
    for (unsigned g = group; g; g &= g - 1) {
        thread &me = lane[__builtin_ctz(g)];
        me.result = voted;
        if (what == emulate::MATCH)
            for (unsigned k = group; k; k &= k - 1)
                if (lane[__builtin_ctz(k)].value == me.value) me.result |= k & -k;
    }
}

/* All lanes of a group are there: they go on, if they came for the same. */
SELDOM bool meet(warp &w, thread *lane, const thread &me, unsigned group)
{
    for (unsigned g = w.mixed ? group : 0; g; g &= g - 1) {
        const thread &other = lane[__builtin_ctz(g)];
        if (other.mask != me.mask || other.what != me.what) return false;
    }
    find_outcomes(lane, group, me.what);
    w.waiting &= ~group;
    w.ready |= group;
    return true;
}

/* Let the lanes that t waits for go on, if all of them that have not ended are there. */
FAST bool release_warp(int t)
{
    warp &w = warps[t / WARP];
    const thread &me = threads[t];
    const unsigned group = w.all & ~w.ended & me.mask;
    return !(group & ~w.waiting) && meet(w, threads + t / WARP * WARP, me, group);
}

bool release_block()
{
    if (at_block == 0 || at_block + ended < n_threads) return false;
    votes = yes_votes;
    present = at_block;
    yes_votes = at_block = 0;
    for (int w = 0; w * WARP < n_threads; w++) warps[w].ready = warps[w].all & ~warps[w].ended;
    return true;
}

/* Those that wait for a change of memory look whether it came. */
bool look_again()
{
    enum { ENOUGH = 1 << 20 };
    bool any = false;
    for (int w = 0; w * WARP < n_threads; w++) {
        any |= warps[w].looking != 0;
        warps[w].ready |= warps[w].looking;
        warps[w].looking = 0;
    }
    if (any && ++looks > ENOUGH) stop("some threads wait for what nobody writes");
    return any;
}

/* Nobody can go on: lanes that waited for others that have ended since are let through, or the
 * block. */
bool release()
{
    bool any = false;
    for (int t = 0; t < n_threads; t++)
        if (warps[t / WARP].waiting >> t % WARP & 1u) any |= release_warp(t);
    return any || look_again() || release_block();
}

/* ---- who runs ---- */

/* One that can go on, of a warp that has some. */
FAST int take_lane(int w)
{
    const unsigned ready = warps[w].ready;
    const int lane = backwards ? 31 - __builtin_clz(ready) : __builtin_ctz(ready);
    warps[w].ready = ready & ~(1u << lane);
    return w * WARP + lane;
}

/* The first warp that has one, or -1 when all threads have ended. */
SELDOM int pick_elsewhere()
{
    const int n_warps = (n_threads + WARP - 1) / WARP;
    for (;;) {
        for (int i = 0; i < n_warps; i++) {
            const int w = backwards ? n_warps - 1 - i : i;
            if (warps[w].ready) return take_lane(w);
        }
        if (ended == n_threads) return -1;
        if (!release()) stop("some threads wait for others that never come");
    }
}

/* The next thread, or -1 when all have ended. Those of the same warp come first, whose stacks are
 * in the cache. */
FAST int pick()
{
    return warps[now / WARP].ready ? take_lane(now / WARP) : pick_elsewhere();
}

void work();

/* A fiber that has nothing to run. */
SELDOM fiber *fresh()
{
    if (idle.empty()) {
        if (!stacks) {
            void *all = mmap(nullptr, ALL_STACKS, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (all == MAP_FAILED) stop("there is no memory for stacks");
            stacks = static_cast<char *>(all);
        }
        fiber *f = new fiber();
        f->stack = stacks + fibers.size() * STEP;
        *reinterpret_cast<uint64_t *>(f->stack) = UNTOUCHED;
        begin(&f->place, f->stack, STACK, work);
        idle.push_back(f);
        fibers.push_back(f);
    }
    fiber *const f = idle.back();
    idle.pop_back();
    return f;
}

/* The fiber of a thread, which has one from now on. */
FAST fiber *fiber_of(int t)
{
    if (!threads[t].runner) threads[t].runner = starting = fresh();
    threads[t].runner->thread = t;
    return threads[t].runner;
}

/* Between fibers the address sanitizer is told only where it keeps stacks of its own; elsewhere it
 * takes those of all fibers for one. */
FAST void arrive(void *fake)
{
    if (!from_home && !has_fake_stacks) return;
    const void *bottom = nullptr;
    size_t size = 0;
    SWITCH_END(fake, &bottom, &size);
    if (from_home) {
        home_bottom = bottom;
        home_size = size;
        from_home = false;
    }
}

FAST void go(fiber *from, fiber *to)
{
    if (has_fake_stacks) SWITCH_START(&from->fake, to->stack, STACK);
    turn(&from->place, &to->place);
    arrive(from->fake);
}

/* Leave a fiber for the caller of the kernel. */
void go_home(fiber *f)
{
    SWITCH_START(&f->fake, home_bottom, home_size);
    turn(&f->place, &home);
    arrive(f->fake);
}

/* Runs its thread, and then others that were not begun, for as long as none of them waits. */
void work()
{
    fiber *const f = starting;
    arrive(nullptr);
    for (;;) {
        const int t = f->thread;
        be(t);
        body(arg);
        warps[t / WARP].ended |= 1u << t % WARP;
        ended++;
        const int next = pick();
        if (next >= 0 && !threads[next].runner) {
            threads[next].runner = f;
            f->thread = next;
            continue;
        }
        idle.push_back(f);
        if (next < 0)
            go_home(f);
        else
            go(f, fiber_of(next));
    }
}

/* The thread that runs waits for others; here again when it can go on. */
FAST void leave(int t)
{
    const int next = pick();
    if (next != t) go(threads[t].runner, fiber_of(next));
    be(t);
}

void run_block()
{
    for (int t = 0; t < n_threads; t++) threads[t].runner = nullptr;
    for (int t = 0; t < n_threads; t += WARP) {
        const unsigned all = n_threads - t < WARP ? (1u << (n_threads - t)) - 1 : ~0u;
        warps[t / WARP] = warp{};
        warps[t / WARP].all = warps[t / WARP].ready = all;
    }
    ended = at_block = yes_votes = looks = 0;
    now = backwards ? n_threads - 1 : 0;
    fiber *f = fiber_of(pick());
    from_home = true;
    has_fake_stacks = HAS_FAKE_STACKS();
    if (has_fake_stacks)
        SWITCH_START(&home_fake, f->stack, STACK);
    else
        SWITCH_START(&home_fake, stacks, ALL_STACKS);
    turn(&home, &f->place);
    SWITCH_END(home_fake, nullptr, nullptr);
}

} // namespace

namespace emulate
{

void end()
{
    for (fiber *f : fibers) {
        if (*reinterpret_cast<uint64_t *>(f->stack) != UNTOUCHED) stop("a stack was too small");
        delete f;
    }
    fibers.clear();
    idle.clear();
    if (stacks) munmap(stacks, ALL_STACKS);
    stacks = nullptr;
}

bool refused()
{
    const bool was = was_refused;
    was_refused = false;
    return was;
}

int lane()
{
    return now % WARP;
}

unsigned lanes_there()
{
    return warps[now / WARP].all & ~warps[now / WARP].ended;
}

void turn()
{
    const int t = now;
    warps[t / WARP].looking |= 1u << t % WARP;
    leave(t);
}

int wait_block(bool yes, int *n)
{
    at_block++;
    yes_votes += yes;
    leave(now);
    if (n) *n = present;
    return votes;
}

uint64_t wait_warp(meeting what, unsigned mask, uint64_t value, int from)
{
    const int t = now;
    if (!(mask >> (t % WARP) & 1u)) stop("a lane is not in its own mask");
    thread &me = threads[t];
    me.what = what;
    me.mask = mask;
    me.value = value;
    me.from = from;
    warp &w = warps[t / WARP];
    if (!w.waiting) w.mask = mask, w.what = what, w.mixed = false;
    w.mixed |= w.mask != mask || w.what != what;
    w.waiting |= 1u << t % WARP;
    release_warp(t);
    leave(t);
    return me.result;
}

void launch(dim3 blocks, dim3 per_block, void (*run)(void *), void *with)
{
    gridDim = blocks;
    blockDim = per_block;
    n_threads = (int)(per_block.x * per_block.y * per_block.z);
    body = run;
    arg = with;
    threadIdx = uint3{};
    backwards = launches++ % 2 == 1;
    const uint64_t n = uint64_t{blocks.x} * blocks.y * blocks.z;
    if (n == 0 || blocks.y > 65535 || blocks.z > 65535 || blocks.x > 0x7fffffffu ||
        n_threads == 0 || n_threads > MOST) {
        was_refused = true;
        return;
    }
    find_places();
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t b = backwards ? n - 1 - i : i;
        blockIdx.x = (unsigned)(b % blocks.x);
        blockIdx.y = (unsigned)(b / blocks.x % blocks.y);
        blockIdx.z = (unsigned)(b / blocks.x / blocks.y);
        run_block();
    }
}

} // namespace emulate
