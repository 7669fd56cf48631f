/* fuzz_options.c - what the sanitizers allow libhdf5 in fuzz targets. */

/* It believes lengths that damaged files give, asks for that much and goes on when it gets nothing,
 * as it would from malloc. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}

/* It loses a few bytes of its own on some damaged files (docs/formats.md). What our side loses is
 * found all the same: fuzz_file_close asks the memory it came from. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5\n";
}
