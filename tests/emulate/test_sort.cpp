/* test_sort.cpp - fathom/cuda_sort.h, emulated: every size, kind of key and range of bits against a
 * plain stable sort, counts on the device, what lies behind them untouched.
 * seconds: 5
 */
#include "cuda_runtime.h"

#include <fathom/cuda_sort.h>

#include <algorithm>
#include <stdio.h>
#include <vector>

static int failures;
static uint64_t state = 88172645463325252u;

static uint64_t draw()
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void expect(bool yes, const char *what, int64_t n, int low, int high)
{
    if (yes) return;
    printf("%s: n %lld, bits %d to %d\n", what, (long long)n, low, high);
    failures++;
}

/* `live` of n keys are sorted, those behind them and the bytes behind the workspace stay. */
template <typename K>
static void sort_some(int64_t lines, int64_t n, int64_t live, int low, int high, uint64_t kinds,
                      bool positions)
{
    const uint64_t bytes = fth_cuda_radix_bytes<K>(lines, n);
    std::vector<uint64_t> block(bytes / 8 + 9, 0xa5a5a5a5a5a5a5a5u);
    fth_cuda_radix<K> r = fth_cuda_radix_in<K>(block.data(), lines, n);
    uint64_t count = (uint64_t)live;
    r.count = live == n && draw() % 2 ? NULL : &count;
    r.positions = positions;
    std::vector<K> key((size_t)(lines * n));
    std::vector<uint32_t> value((size_t)(lines * n)), order;
    for (size_t i = 0; i < key.size(); i++) {
        r.key[0][i] = key[i] = (K)(kinds ? draw() % kinds * 0x9e3779b97f4a7c15u : draw());
        r.value[0][i] = value[i] = positions ? (uint32_t)(i % (size_t)n) : (uint32_t)draw();
    }
    const int at = fth_cuda_radix_sort(&r, low, high, 0);
    const uint64_t mask = high - low >= 64 ? ~0ull : (1ull << (high - low)) - 1;
    for (int64_t line = 0; line < lines; line++) {
        const size_t from = (size_t)(line * n);
        order.resize((size_t)live);
        for (size_t i = 0; i < order.size(); i++) order[i] = (uint32_t)i;
        std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
            return ((uint64_t)key[from + a] >> low & mask) <
                   ((uint64_t)key[from + b] >> low & mask);
        });
        for (size_t i = 0; i < order.size(); i++)
            if (r.key[at][from + i] != key[from + order[i]] ||
                r.value[at][from + i] != value[from + order[i]]) {
                expect(false, "not in order", n, low, high);
                return;
            }
    }
    for (size_t i = bytes / 8; i < block.size(); i++)
        expect(block[i] == 0xa5a5a5a5a5a5a5a5u, "wrote outside", n, low, high);
}

template <typename T> static void scan_some(int64_t n, int64_t live, uint64_t most)
{
    std::vector<T> in((size_t)n + 1), out((size_t)n + 1, (T)77);
    std::vector<uint64_t> scratch(fth_cuda_scan_bytes(n) / 8 + 1);
    uint64_t count = (uint64_t)live, total = 12345, sum = 0;
    for (T &v : in) v = (T)(draw() % most);
    fth_cuda_scan<T>(in.data(), out.data(), n, live == n ? NULL : &count, &total, scratch.data(),
                     0);
    for (int64_t i = 0; i < live; i++) {
        if (out[(size_t)i] != (T)sum) return expect(false, "wrong sum", n, (int)i, 0);
        sum += in[(size_t)i];
    }
    expect(total == sum, "wrong total", n, 0, 0);
    for (int64_t i = live; i <= n; i++) expect(out[(size_t)i] == (T)77, "wrote behind", n, 0, 0);
    fth_cuda_scan<T>(in.data(), in.data(), n, live == n ? NULL : &count, NULL, scratch.data(), 0);
    for (int64_t i = 0; i < live; i++) expect(in[(size_t)i] == out[(size_t)i], "in place", n, 0, 0);
}

int main()
{
    const int64_t sizes[] = {0, 1, 2, 31, 33, 255, 256, 257, 2047, 2049, 4095, 4096, 4097, 9001};
    for (int64_t n : sizes) {
        for (uint64_t kinds : {0ull, 1ull, 3ull}) {
            sort_some<uint16_t>(1, n, n, 0, 16, kinds, true);
            sort_some<uint16_t>(1, n, n / 2, 0, 13, kinds, true);
            sort_some<uint32_t>(1, n, n, 0, 32, kinds, false);
            sort_some<uint32_t>(1, n, n - n / 3, 5, 18, kinds, false);
            sort_some<uint64_t>(1, n, n, 0, 64, kinds, true);
            sort_some<uint64_t>(1, n, n > 0, 30, 41, kinds, false);
        }
        sort_some<uint32_t>(3, n, n, 0, 9, 5, true);
        sort_some<uint32_t>(1, n, n, 4, 4, 0, true); /* no bit: all stay */
        scan_some<uint32_t>(n, n, 1000);
        scan_some<uint32_t>(n, n / 3, 2);
        scan_some<uint64_t>(n, n, 1ull << 40);
    }
    scan_some<uint32_t>(3 * 2048 * 2048 + 5, 2048 * 2048 + 77,
                        3); /* more tiles than a block takes */
    sort_some<uint16_t>(1, 300 * 4096 + 9, 270 * 4096 + 1, 0, 8, 0, true);
    printf("%s\n", failures ? "FAILED" : "sorts and scans are those of plain loops");
    emulate::end();
    return failures != 0;
}
