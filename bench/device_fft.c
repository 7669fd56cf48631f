/* device_fft.c - Fourier transforms of images on a device, against one plan of cuFFT by PyTorch and
 * against a copy of the same bytes: read once and written once is the least there can be. */
#include "device.h"

typedef struct images {
    const char *name, *shape;
    int64_t count, n;
} images;

static void transform(device *d, const images *i)
{
    if (!bench_wants(d->b, i->name)) return;
    bench_program p;
    bench_open_within(&p, d->b, 0);
    if (p.status != FTH_OK) {
        device_close(d, &p);
        return;
    }
    const int64_t count = device_size(d, i->count);
    fth_axis(p.g, "i", count);
    fth_axis(p.g, "y", i->n);
    fth_axis(p.g, "x", i->n);
    fth_axis(p.g, "v", i->n);
    fth_axis(p.g, "u", i->n);
    const fth_val from = bench_param(&p, "from", FTH_C64, "i y x", FTH_FULL),
                  to = bench_param(&p, "to", FTH_C64, "i v u", FTH_FULL);
    bench_assign(&p, to, fth_fft(from, "y x", "v u"));
    bench_plan(&p, 0, false);
    char line[64];
    snprintf(line, sizeof line, "fft2 %lld %lld", (long long)count, (long long)i->n);
    device_task t = {.name = i->name,
                     .shape = i->shape,
                     .p = &p,
                     .amount = 16e-9 * (double)(count * i->n * i->n),
                     .unit = "GB/s",
                     .limit = d->copy_rate,
                     .peer = line,
                     .peer_name = "torch.fft.fft2",
                     .bar = 0.95};
    (void)device_compare(d, &t);
    device_close(d, &p);
}

void device_transforms(device *d)
{
    static const images all[] = {{"device_fft2_64", "100,000 x 64^2 c64", 100000, 64},
                                 {"device_fft2_512", "1,024 x 512^2 c64", 1024, 512}};
    for (int i = 0; i < 2; i++) transform(d, &all[i]);
}
