/* emulate.cpp - the scheduler of fibers behind emulate.h. */
#include "cuda_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define SWITCH_START(keep, bottom, size) __sanitizer_start_switch_fiber(keep, bottom, size)
#define SWITCH_END(keep, bottom, size) __sanitizer_finish_switch_fiber(keep, bottom, size)
#else
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

enum { STACK = 256 << 10, WARP = 32, MOST = 1024 };
enum state { WAITING_BLOCK, WAITING_WARP, READY, DONE };

/* One thread of the block. */
struct thread {
    state is;
    emulate::meeting what;
    unsigned mask;
    uint64_t value, result;
    int from, fiber;
    bool yes;
};

struct fiber {
    context place;
    char *stack;
    int thread; /* that it runs now; -1: none */
    void *fake; /* the address sanitizer's */
};

context home;
void *home_fake;
const void *home_bottom;
size_t home_size;
std::vector<fiber *> fibers;
std::vector<int> idle;
thread threads[MOST];
int n_threads, next_thread, now, votes, present, starting;
bool backwards, was_refused;
uint64_t launches;
void (*body)(void *);
void *arg;

[[noreturn]] void stop(const char *why)
{
    fprintf(stderr, "emulated kernel: %s (block %u %u %u, thread %d of %d)\n", why, blockIdx.x,
            blockIdx.y, blockIdx.z, now, n_threads);
    abort();
}

void be(int t)
{
    now = t;
    threadIdx.x = (unsigned)t % blockDim.x;
    threadIdx.y = (unsigned)t / blockDim.x % blockDim.y;
    threadIdx.z = (unsigned)t / blockDim.x / blockDim.y;
}

/* Leave a fiber for the scheduler. */
void leave(fiber *f)
{
    SWITCH_START(&f->fake, home_bottom, home_size);
    turn(&f->place, &home);
    SWITCH_END(f->fake, &home_bottom, &home_size);
}

/* Runs threads that were not begun, one after another, for as long as none of them waits. */
void work()
{
    const int self = starting;
    fiber *f = fibers[(size_t)self];
    SWITCH_END(nullptr, &home_bottom, &home_size);
    for (;;) {
        while (next_thread < n_threads) {
            const int t = backwards ? n_threads - 1 - next_thread : next_thread;
            next_thread++;
            f->thread = t;
            threads[t].fiber = self;
            be(t);
            body(arg);
            threads[t].is = DONE;
        }
        f->thread = -1;
        idle.push_back(self);
        leave(f);
    }
}

void resume(fiber *f)
{
    if (f->thread >= 0) be(f->thread);
    SWITCH_START(&home_fake, f->stack, STACK);
    turn(&home, &f->place);
    SWITCH_END(home_fake, nullptr, nullptr);
}

fiber *fresh()
{
    if (idle.empty()) {
        fiber *f = new fiber();
        f->stack = static_cast<char *>(malloc(STACK));
        f->thread = -1;
        begin(&f->place, f->stack, STACK, work);
        idle.push_back((int)fibers.size());
        fibers.push_back(f);
    }
    starting = idle.back();
    idle.pop_back();
    return fibers[(size_t)starting];
}

/* ---- meetings ---- */

/* The lanes of the warp of t that are in the mask and have not ended. */
unsigned wanted(int t, unsigned mask)
{
    unsigned there = 0;
    for (int l = 0; l < WARP && t / WARP * WARP + l < n_threads; l++)
        if (threads[t / WARP * WARP + l].is != DONE) there |= 1u << l;
    return there & mask;
}

uint64_t outcome(const thread *warp, unsigned group, int l)
{
    uint64_t lanes = 0;
    const thread &me = warp[l];
    if (me.what == emulate::SHUFFLE)
        return group >> me.from & 1u ? warp[me.from].value : 0xA5A5A5A5A5A5A5A5u;
    for (int k = 0; k < WARP; k++)
        if (group >> k & 1u)
            if (me.what == emulate::BALLOT ? warp[k].value != 0 : warp[k].value == me.value)
                lanes |= uint64_t{1} << k;
    return lanes;
}

/* Let the lanes that t waits for go on, if all of them are there. */
bool release_warp(int t)
{
    thread *warp = threads + t / WARP * WARP;
    const unsigned group = wanted(t, threads[t].mask);
    for (int l = 0; l < WARP; l++)
        if (group >> l & 1u)
            if (warp[l].is != WAITING_WARP || warp[l].mask != threads[t].mask ||
                warp[l].what != threads[t].what)
                return false;
    for (int l = 0; l < WARP; l++)
        if (group >> l & 1u) warp[l].result = outcome(warp, group, l);
    for (int l = 0; l < WARP; l++)
        if (group >> l & 1u) warp[l].is = READY;
    return true;
}

bool release_block()
{
    votes = present = 0;
    for (int t = 0; t < n_threads; t++)
        if (threads[t].is == WAITING_BLOCK) {
            present++;
            votes += threads[t].yes;
        } else if (threads[t].is != DONE)
            return false;
    for (int t = 0; t < n_threads; t++)
        if (threads[t].is == WAITING_BLOCK) threads[t].is = READY;
    return present > 0;
}

/* Everybody that can has gone on: who is let through? */
bool release()
{
    bool any = false;
    for (int t = 0; t < n_threads; t++)
        if (threads[t].is == WAITING_WARP) any |= release_warp(t);
    return any || release_block();
}

void run_block()
{
    for (int t = 0; t < n_threads; t++)
        threads[t] = thread{READY, emulate::SYNC, 0, 0, 0, 0, -1, 0};
    next_thread = 0;
    for (;;) {
        while (next_thread < n_threads) resume(fresh());
        bool waits = false;
        for (int i = 0; i < n_threads; i++) {
            const int t = backwards ? n_threads - 1 - i : i;
            if (threads[t].is == READY) resume(fibers[(size_t)threads[t].fiber]);
            waits |= threads[t].is != DONE;
        }
        if (!waits) return;
        bool ready = false;
        for (int t = 0; t < n_threads && !ready; t++) ready = threads[t].is == READY;
        if (!ready && !release()) stop("some threads wait for others that never come");
    }
}

} // namespace

namespace emulate
{

void end()
{
    for (fiber *f : fibers) {
        free(f->stack);
        delete f;
    }
    fibers.clear();
    idle.clear();
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
    return wanted(now, ~0u);
}

int wait_block(bool yes, int *n)
{
    const int t = now;
    threads[t].is = WAITING_BLOCK;
    threads[t].yes = yes;
    leave(fibers[(size_t)threads[t].fiber]);
    if (n) *n = present;
    return votes;
}

uint64_t wait_warp(meeting what, unsigned mask, uint64_t value, int from)
{
    const int t = now;
    if (!(mask >> (t % WARP) & 1u)) stop("a lane is not in its own mask");
    thread &me = threads[t];
    me.is = WAITING_WARP;
    me.what = what;
    me.mask = mask;
    me.value = value;
    me.from = from;
    leave(fibers[(size_t)me.fiber]);
    return me.result;
}

void launch(dim3 blocks, dim3 per_block, void (*run)(void *), void *with)
{
    gridDim = blocks;
    blockDim = per_block;
    n_threads = (int)(per_block.x * per_block.y * per_block.z);
    body = run;
    arg = with;
    backwards = launches++ % 2 == 1;
    const uint64_t n = uint64_t{blocks.x} * blocks.y * blocks.z;
    if (n == 0 || blocks.y > 65535 || blocks.z > 65535 || blocks.x > 0x7fffffffu ||
        n_threads == 0 || n_threads > MOST) {
        was_refused = true;
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t b = backwards ? n - 1 - i : i;
        blockIdx.x = (unsigned)(b % blocks.x);
        blockIdx.y = (unsigned)(b / blocks.x % blocks.y);
        blockIdx.z = (unsigned)(b / blocks.x / blocks.y);
        run_block();
    }
}

} // namespace emulate
