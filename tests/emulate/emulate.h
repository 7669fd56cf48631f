/* emulate.h - CUDA kernels on the CPU: the threads of a block as fibers, blocks one after another.
 *
 * A thread that never waits for others runs to its end without a switch; one that does is left
 * where it stands and the next begins. When nobody can go on but all that have to be there are,
 * they are let through. A barrier that some thread never reaches stops the program with a message.
 * Every second launch runs blocks and threads backwards, so results that depend on their order
 * differ between two runs.
 */
#ifndef FTH_EMULATE_H
#define FTH_EMULATE_H

#include <stdint.h>

struct uint3;
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};

/* Kernels that are compiled at run time find these. */
#pragma GCC visibility push(default)
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

namespace emulate
{

/* What lanes of a warp do together. */
enum meeting { SYNC, SHUFFLE, BALLOT, MATCH };

/* Give back what launches have taken; nothing runs. */
void end();
void launch(dim3 blocks, dim3 threads, void (*body)(void *), void *arg);
bool refused(); /* was there a launch that a device refuses, since this was asked? */
/* Wait for the block; how many threads came with `yes`. */
int wait_block(bool yes, int *threads);
/* Wait for the lanes of the mask. SHUFFLE: the value of lane `from`; BALLOT: lanes with a value;
 * MATCH: lanes with the same value. */
uint64_t wait_warp(meeting what, unsigned mask, uint64_t value, int from);
/* Let the others go on; here again when nobody else can. For loops that wait for a change of
 * memory. */
void turn();
int lane();
unsigned lanes_there(); /* of this warp that have not ended */
#pragma GCC visibility pop

template <typename F> void run(dim3 blocks, dim3 threads, F body)
{
    launch(
        blocks, threads, [](void *f) { (*static_cast<F *>(f))(); }, &body);
}

} // namespace emulate

#define FTH_LAUNCH(kernel, blocks, threads, stream, ...)                                           \
    ((void)(stream), emulate::run(dim3(blocks), dim3(threads), [=] { kernel(__VA_ARGS__); }))
#define FTH_LAUNCH_SHARED(kernel, blocks, threads, bytes, stream, ...)                             \
    ((void)(bytes), FTH_LAUNCH(kernel, blocks, threads, stream, __VA_ARGS__))
#define FTH_SHARED(type, name)                                                                     \
    alignas(16) static unsigned char fth_shared_[227 << 10];                                       \
    type *const name = (type *)fth_shared_

#endif
