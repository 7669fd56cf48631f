/* hdf5.c - HDF5 files: types, errors, and datasets of numbers as sources.
 *
 * A dataset gets a chunk cache of exactly one chunk, and what the library then
 * holds is billed to our memory by a block that is never touched. libhdf5 must be the
 * thread-safe one: it has its own lock, and error stacks per thread.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "io/h5.h"
#include "io/h5_info.h"
#include "io/lzf.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

/* ---- errors ---- */

fth__h5_quiet fth__h5_enter(void)
{
    fth__h5_quiet q = {0};
    /* A file that could not be closed (the disk is full) makes HDF5 1.10 crash when it tidies up at
     * the end of the process. We close all we open, so it need not; later calls change nothing. */
    (void)H5dont_atexit();
    H5Eget_auto2(H5E_DEFAULT, &q.print, &q.data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return q;
}

void fth__h5_leave(fth__h5_quiet q)
{
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, q.print, q.data);
}

typedef struct cause {
    char text[300];
} cause;

static herr_t take_cause(unsigned n, const H5E_error2_t *e, void *user)
{
    cause *c = user;
    if (n == 0 && e->desc) snprintf(c->text, sizeof c->text, "%s", e->desc);
    return 0;
}

fth_status fth__h5_fail_(fth_err *err, fth_site site, fth_status status, const char *path,
                         const char *object, const char *what)
{
    cause c = {"no reason given"};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_cause, &c);
    H5Eclear2(H5E_DEFAULT);
    return fth_err_set(err, site, status, "%s, %s: %s: %s", path, object, what, c.text);
}

/* ---- types ---- */

static const struct {
    const char *r, *i;
} part_names[] = {{"r", "i"}, {"re", "im"}, {"real", "imag"}};

static hid_t make_complex(hid_t part, const char *r, const char *i)
{
    const size_t bytes = H5Tget_size(part);
    const hid_t t = H5Tcreate(H5T_COMPOUND, 2 * bytes);
    if (t >= 0 && H5Tinsert(t, r, 0, part) >= 0 && H5Tinsert(t, i, bytes, part) >= 0) return t;
    if (t >= 0) H5Tclose(t);
    return -1;
}

static hid_t make_half(size_t exponent, size_t bias)
{
    const hid_t t = H5Tcopy(H5T_IEEE_F32LE);
    const size_t mantissa = 15 - exponent;
    if (t >= 0 && H5Tset_fields(t, 15, mantissa, exponent, 0, mantissa) >= 0 &&
        H5Tset_size(t, 2) >= 0 && H5Tset_ebias(t, bias) >= 0)
        return t;
    if (t >= 0) H5Tclose(t);
    return -1;
}

static hid_t make_bool(void)
{
    const hid_t t = H5Tenum_create(H5T_NATIVE_INT8);
    const int8_t no = 0, yes = 1;
    if (t >= 0 && H5Tenum_insert(t, "FALSE", &no) >= 0 && H5Tenum_insert(t, "TRUE", &yes) >= 0)
        return t;
    if (t >= 0) H5Tclose(t);
    return -1;
}

hid_t fth__h5_type(fth_dtype dtype)
{
    switch (dtype) {
    case FTH_BOOL: return make_bool();
    case FTH_U8: return H5Tcopy(H5T_NATIVE_UINT8);
    case FTH_U16: return H5Tcopy(H5T_NATIVE_UINT16);
    case FTH_I32: return H5Tcopy(H5T_NATIVE_INT32);
    case FTH_I64: return H5Tcopy(H5T_NATIVE_INT64);
    case FTH_U32: return H5Tcopy(H5T_NATIVE_UINT32);
    case FTH_I16: return H5Tcopy(H5T_NATIVE_INT16);
    case FTH_I8: return H5Tcopy(H5T_NATIVE_INT8);
    case FTH_F16: return make_half(5, 15);
    case FTH_BF16: return make_half(8, 127);
    case FTH_F32: return H5Tcopy(H5T_NATIVE_FLOAT);
    case FTH_F64: return H5Tcopy(H5T_NATIVE_DOUBLE);
    case FTH_C64: return make_complex(H5T_NATIVE_FLOAT, "r", "i");
    case FTH_C128: return make_complex(H5T_NATIVE_DOUBLE, "r", "i");
    case FTH_DTYPE_COUNT: break;
    }
    return -1;
}

static bool is_named(hid_t compound, unsigned k, const char *name)
{
    char *found = H5Tget_member_name(compound, k);
    const bool same = found && strcmp(found, name) == 0;
    H5free_memory(found);
    return same;
}

static bool is_bool(hid_t type)
{
    if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
    int8_t v[2] = {-1, -1};
    for (unsigned k = 0; k < 2; k++)
        if (H5Tget_member_value(type, k, &v[k]) < 0 || !is_named(type, k, v[k] ? "TRUE" : "FALSE"))
            return false;
    return v[0] + v[1] == 1;
}

/* A dtype of ours for integers of any width that loses nothing. */
static bool map_integer(hid_t type, fth_dtype *dtype)
{
    const size_t bytes = H5Tget_size(type);
    const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
    if (bytes > 8) return false;
    if (bytes <= 1)
        *dtype = is_signed ? FTH_I8 : FTH_U8;
    else if (bytes <= 2)
        *dtype = is_signed ? FTH_I16 : FTH_U16;
    else if (bytes <= 4)
        *dtype = is_signed ? FTH_I32 : FTH_U32;
    else
        *dtype = FTH_I64;
    return true;
}

static bool map_float(hid_t type, fth_dtype *dtype)
{
    size_t sign = 0, e_at = 0, e_bits = 0, m_at = 0, m_bits = 0;
    if (H5Tget_fields(type, &sign, &e_at, &e_bits, &m_at, &m_bits) < 0) return false;
    switch (H5Tget_size(type)) {
    case 2:
        *dtype = e_bits == 8 ? FTH_BF16 : FTH_F16;
        return e_bits + m_bits == 15 && (e_bits == 5 || e_bits == 8);
    case 4: *dtype = FTH_F32; return true;
    case 8: *dtype = FTH_F64; return true;
    default: return false;
    }
}

/* h5py's complex: two equal floats with known names. Their names are kept, HDF5 matches by name. */
static bool map_complex(hid_t type, fth_dtype *dtype, hid_t *memory)
{
    if (H5Tget_nmembers(type) != 2) return false;
    const hid_t a = H5Tget_member_type(type, 0), b = H5Tget_member_type(type, 1);
    fth_dtype part = FTH_BOOL;
    const bool equal = a >= 0 && b >= 0 && H5Tget_class(a) == H5T_FLOAT && H5Tequal(a, b) > 0 &&
                       map_float(a, &part) && fth_dtype_complex_of(part) != part;
    if (a >= 0) H5Tclose(a);
    if (b >= 0) H5Tclose(b);
    for (size_t k = 0; equal && k < sizeof part_names / sizeof part_names[0]; k++) {
        if (!is_named(type, 0, part_names[k].r) || !is_named(type, 1, part_names[k].i)) continue;
        *dtype = fth_dtype_complex_of(part);
        *memory = make_complex(part == FTH_F32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE,
                               part_names[k].r, part_names[k].i);
        return true;
    }
    return false;
}

/* The dtype of a dataset and the type to read it with. */
static fth_status map_type(hid_t type, fth_dtype *dtype, hid_t *memory, const char *path,
                           const char *object, fth_err *err)
{
    const H5T_class_t class = H5Tget_class(type);
    bool known = false;
    *memory = -1;
    if (class == H5T_INTEGER) known = map_integer(type, dtype);
    if (class == H5T_FLOAT) known = map_float(type, dtype);
    if (class == H5T_COMPOUND) known = map_complex(type, dtype, memory);
    if (class == H5T_ENUM && is_bool(type)) {
        known = true;
        *dtype = FTH_BOOL;
        *memory = H5Tcopy(type);
    }
    if (class == H5T_STRING)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s, %s: numbers were wanted, it holds text", path,
                        object);
    if (!known)
        return FTH_FAIL(
            err, FTH_E_FILE_FEATURE,
            "%s, %s: its elements (HDF5 class %d of %zu bytes) are not numbers of a known kind",
            path, object, (int)class, H5Tget_size(type));
    if (*memory < 0) *memory = fth__h5_type(*dtype);
    return *memory < 0 ? H5_FAIL(err, FTH_E_LIBRARY, path, object, "making a type") : FTH_OK;
}

/* ---- h5py's LZF ---- */

enum { LZF = 32000 }; /* the id that is registered for it */

/* Reading only. The third value of the filter is the size of a chunk; datasets of strings have no
 * values at all, and then the stream says it. */
static size_t lzf_filter(unsigned flags, size_t n, const unsigned values[], size_t bytes,
                         size_t *room, void **buffer)
{
    if (!(flags & H5Z_FLAG_REVERSE)) return 0;
    const size_t most = n >= 3 && values[2] > 0 ? values[2] : fth__lzf_size(*buffer, bytes);
    if (most == 0) return 0;
    unsigned char *out = H5allocate_memory(most, false);
    const size_t made = out ? fth__lzf_unpack(*buffer, bytes, out, most) : 0;
    FTH_ASSERT(made <= most);
    if (made == 0) {
        H5free_memory(out);
        return 0;
    }
    H5free_memory(*buffer);
    *buffer = out;
    *room = most;
    return made;
}

/* Once per process; a filter that is already there, ours or a plugin's, stays. */
static void register_lzf(void)
{
    static const H5Z_class2_t lzf = {.version = H5Z_CLASS_T_VERS,
                                     .id = LZF,
                                     .decoder_present = 1,
                                     .name = "lzf",
                                     .filter = lzf_filter};
    if (H5Zfilter_avail(LZF) <= 0) H5Zregister(&lzf);
}

/* ---- files ---- */

hid_t fth__h5_access(void)
{
    const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    if (fapl < 0) return fapl;
    H5Pset_file_locking(fapl, false, true);
    /* Strong: a dataset that HDF5 had no memory to open counts as open for ever, and what it forgot
     * after a failure must not keep the file open. */
    if (H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) >= 0) return fapl;
    H5Pclose(fapl);
    return -1;
}

static fth_status open_file(fth_h5 *h5, const char *path, fth_err *err)
{
    hbool_t safe = false;
    if (H5is_library_threadsafe(&safe) < 0 || !safe)
        return FTH_FAIL(err, FTH_E_LIBRARY,
                        "libhdf5 was built without thread safety, which is needed");
    /* Ours says why a file cannot be opened; HDF5 only that it cannot. */
    fth_file *probe = NULL;
    FTH_TRY(fth_file_open(&probe, h5->mem, path, err));
    h5->bytes = probe->bytes;
    fth_file_close(probe);
    register_lzf();
    fth__h5_register_filters();
    const hid_t fapl = fth__h5_access();
    h5->file = H5Fopen(path, H5F_ACC_RDONLY, fapl);
    const fth_status s =
        h5->file < 0 ? H5_FAIL(err, FTH_E_FILE_FORMAT, path, "/", "opening it as HDF5") : FTH_OK;
    if (fapl >= 0) H5Pclose(fapl);
    return s;
}

fth_status fth_h5_open(fth_h5 **out, fth_mem *mem, const char *path, fth_err *err)
{
    *out = NULL;
    if (!mem || !path) return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory and a path to open");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_h5), &block, err));
    fth_h5 *h5 = block;
    h5->mem = mem;
    h5->file = -1;
    atomic_init(&h5->refs, 1);
    h5->path = fth__heap_strdup(mem, path);
    const fth__h5_quiet q = fth__h5_enter();
    const fth_status s = h5->path ? open_file(h5, path, err)
                                  : FTH_FAIL(err, FTH_E_NOMEM, "no memory to open %s", path);
    fth__h5_leave(q);
    if (s != FTH_OK) {
        fth_h5_close(h5);
        return s;
    }
    *out = h5;
    return FTH_OK;
}

void fth_h5_close(fth_h5 *h5)
{
    if (!h5 || atomic_fetch_sub_explicit(&h5->refs, 1, memory_order_acq_rel) != 1) return;
    const fth__h5_quiet q = fth__h5_enter();
    if (h5->file >= 0) H5Fclose(h5->file);
    fth__h5_leave(q);
    fth__heap_free(h5->mem, h5->path);
    fth__heap_free(h5->mem, h5);
}

fth_mem *fth__h5_mem(const fth_h5 *h5)
{
    return h5->mem;
}

const char *fth__h5_path(const fth_h5 *h5)
{
    return h5->path;
}

fth_h5_kind fth_h5_kind_of(fth_h5 *h5, const char *object)
{
    const fth__h5_quiet q = fth__h5_enter();
    const hid_t id = object ? H5Oopen(h5->file, object, H5P_DEFAULT) : -1;
    fth_h5_kind kind = FTH_H5_NONE;
    if (id >= 0) {
        const H5I_type_t type = H5Iget_type(id);
        kind = type == H5I_GROUP     ? FTH_H5_GROUP
               : type == H5I_DATASET ? FTH_H5_DATASET
                                     : FTH_H5_OTHER;
        H5Oclose(id);
    }
    fth__h5_leave(q);
    return kind;
}

/* ---- datasets of numbers ---- */

bool fth__h5_dataset_close(fth__h5_dataset *d)
{
    fth__h5_packed_close(d);
    if (d->transfer >= 0) H5Pclose(d->transfer);
    if (d->space >= 0) H5Sclose(d->space);
    if (d->type >= 0) H5Tclose(d->type);
    const bool ok = d->id < 0 || H5Dclose(d->id) >= 0;
    if (d->bill) (void)fth_mem_release(d->mem, d->bill, NULL);
    fth__heap_free(d->mem, d->name);
    return ok;
}

static void close_source(void *self)
{
    fth__h5_dataset *d = self;
    fth_h5 *h5 = d->h5;
    const fth__h5_quiet q = fth__h5_enter();
    (void)fth__h5_dataset_close(d); /* nothing was written to it */
    fth__h5_leave(q);
    fth__heap_free(d->mem, d);
    fth_h5_close(h5);
}

hid_t fth__h5_select(fth__h5_dataset *d, const int64_t *lo, const int64_t *n)
{
    const int outer = d->n_axes - d->inner;
    FTH_ASSERT(outer >= 0 && outer <= FTH_MAX_AXES);
    if (outer == 0) return H5Screate(H5S_SCALAR);
    hsize_t start[FTH_MAX_AXES], count[FTH_MAX_AXES];
    for (int a = 0; a < outer; a++) {
        FTH_ASSERT(lo[a] >= 0 && n[a] > 0 && lo[a] + n[a] <= d->size[a]);
        start[a] = (hsize_t)lo[a];
        count[a] = (hsize_t)n[a];
    }
    if (H5Sselect_hyperslab(d->space, H5S_SELECT_SET, start, NULL, count, NULL) < 0) return -1;
    return H5Screate_simple(outer, count, NULL);
}

/* Elements [lo, lo+n), where axes of a field are whole. */
static fth_status read_whole(fth__h5_dataset *d, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    const fth__h5_quiet q = fth__h5_enter();
    if (d->packed) {
        const fth_status unpacked = fth__h5_packed_read(d, lo, n, dst, err);
        fth__h5_leave(q);
        return unpacked;
    }
    const hid_t memory = fth__h5_select(d, lo, n);
    const bool ok = memory >= 0 && H5Dread(d->id, d->type, memory, d->space, d->transfer, dst) >= 0;
    const fth_status s = ok ? FTH_OK : fth__h5_read_fail(d, "reading a rectangle", err);
    if (memory >= 0) H5Sclose(memory);
    fth__h5_leave(q);
    return s;
}

/* Part of a field that is a list: HDF5 reads fields whole, so rows go through a copy. */
static fth_status read_cut(fth__h5_dataset *d, const int64_t *lo, const int64_t *n, void *dst,
                           fth_err *err)
{
    const int64_t item = fth_dtype_size(d->dtype), width = d->size[1];
    FTH_ASSERT(d->inner == 1 && d->n_axes == 2 && lo[1] + n[1] <= width);
    void *row = NULL;
    FTH_TRY(fth__heap_take(d->mem, width, (uint64_t)item, &row, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < n[0]; i++) {
        const int64_t at[2] = {lo[0] + i, 0}, one[2] = {1, width};
        s = read_whole(d, at, one, row, err);
        if (s == FTH_OK)
            memcpy((char *)dst + i * n[1] * item, (char *)row + lo[1] * item,
                   (size_t)(n[1] * item));
    }
    fth__heap_free(d->mem, row);
    return s;
}

static fth_status source_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    fth__h5_dataset *d = self;
    FTH_TRY(fth__rect_check(d->name, d->n_axes, d->size, lo, n, err));
    const int64_t count = fth__rect_count(d->n_axes, n);
    if (count == 0) return FTH_OK;
    const bool cut = d->inner > 0 && n[1] < d->size[1];
    FTH_TRY(cut ? read_cut(d, lo, n, dst, err) : read_whole(d, lo, n, dst, err));
    fth__bools_settle(d->dtype, count, dst);
    return FTH_OK;
}

static fth_status source_read_rows(void *self, const int64_t *index, int64_t n, void *dst,
                                   fth_err *err)
{
    const fth__h5_dataset *d = self;
    return fth__rows_by_read(d->name, source_read, self, d->dtype, d->n_axes, d->size, index, n,
                             dst, err);
}

/* HDF5 would clip silently. Of what is read only u64 has numbers that our dtype, i64, has not. */
static H5T_conv_ret_t refuse_range(H5T_conv_except_t what, hid_t from, hid_t to, void *a, void *b,
                                   void *user)
{
    fth__h5_dataset *d = user;
    (void)to, (void)b;
    if (what != H5T_CONV_EXCEPT_RANGE_HI && what != H5T_CONV_EXCEPT_RANGE_LOW)
        return H5T_CONV_UNHANDLED;
    if (what == H5T_CONV_EXCEPT_RANGE_HI && H5Tget_size(from) == sizeof d->beyond) {
        memcpy(&d->beyond, a, sizeof d->beyond);
        if (H5Tget_order(from) == H5T_ORDER_BE) d->beyond = __builtin_bswap64(d->beyond);
    }
    return H5T_CONV_ABORT;
}

fth_status fth__h5_read_fail(fth__h5_dataset *d, const char *what, fth_err *err)
{
    char where[256];
    const uint64_t beyond = d->beyond;
    d->beyond = 0;
    if (beyond == 0) return H5_FAIL(err, FTH_E_FILE_READ, d->h5->path, d->name, what);
    snprintf(where, sizeof where, "%s, %s", d->h5->path, d->name);
    return fth__u64_fail(where, beyond, err);
}

/* HDF5 takes it on trust that a filter gives a whole chunk: one that is too short would be read
 * past its end. */
static fth_status check_lzf_chunk(hid_t dataset, hid_t space, hsize_t index, uint64_t least,
                                  fth_mem *mem, const char *path, const char *object, fth_err *err)
{
    hsize_t at[H5S_MAX_RANK], bytes = 0;
    unsigned mask = 0;
    uint32_t skipped = 0;
    haddr_t address = HADDR_UNDEF;
    void *raw = NULL;
    if (H5Dget_chunk_info(dataset, space, index, at, &mask, &address, &bytes) < 0)
        return H5_FAIL(err, FTH_E_FILE_FORMAT, path, object, "reading where its chunks are");
    if (mask != 0) return FTH_OK; /* it is not packed */
    FTH_TRY(fth_mem_take(mem, FTH_MEM_DIRECT, bytes, "packed chunk", &raw, err));
    fth_status s = FTH_OK;
    if (H5Dread_chunk(dataset, H5P_DEFAULT, at, &skipped, raw) < 0)
        s = H5_FAIL(err, FTH_E_FILE_READ, path, object, "reading a chunk");
    else if (fth__lzf_size(raw, bytes) < least)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s, %s: chunk %" PRIu64 " is damaged: it unpacks to less than its %" PRIu64
                     " bytes",
                     path, object, (uint64_t)index, least);
    (void)fth_mem_release(mem, raw, NULL);
    return s;
}

fth_status fth__h5_check_lzf(hid_t dataset, hid_t create, uint64_t item, fth_mem *mem,
                             const char *path, const char *object, fth_err *err)
{
    hsize_t chunk[H5S_MAX_RANK], chunks = 0;
    unsigned flags = 0, values[3] = {0};
    size_t n = 3;
    unsigned config = 0;
    char name[8];
    if (H5Pget_layout(create) != H5D_CHUNKED ||
        H5Pget_filter_by_id2(create, LZF, &flags, &n, values, sizeof name, name, &config) < 0)
        return FTH_OK;
    uint64_t bytes = item;
    const int rank = H5Pget_chunk(create, H5S_MAX_RANK, chunk);
    for (int a = 0; a < rank; a++)
        if (!fth__mul_u64(bytes, chunk[a], &bytes)) bytes = UINT64_MAX;
    if (n >= 3 && values[2] > 0)
        return values[2] >= bytes
                   ? FTH_OK
                   : FTH_FAIL(
                         err, FTH_E_FILE_FORMAT,
                         "%s, %s: its LZF chunks are said to have %u bytes; they have %" PRIu64,
                         path, object, values[2], bytes);
    const hid_t space = H5Dget_space(dataset);
    fth_status s = FTH_OK;
    if (space < 0 || H5Dget_num_chunks(dataset, space, &chunks) < 0)
        s = H5_FAIL(err, FTH_E_FILE_FORMAT, path, object, "counting its chunks");
    for (hsize_t i = 0; s == FTH_OK && i < chunks; i++)
        s = check_lzf_chunk(dataset, space, i, bytes, mem, path, object, err);
    if (space >= 0) H5Sclose(space);
    return s;
}

fth_status fth__h5_check_filters(hid_t create, const char *path, const char *object, fth_err *err)
{
    static const struct {
        H5Z_filter_t id;
        const char *name;
    } known[] = {{LZF, "LZF"},   {32001, "Blosc"},     {32004, "LZ4"},   {32008, "Bitshuffle"},
                 {32013, "ZFP"}, {32015, "Zstandard"}, {32026, "Blosc2"}};
    if (H5Pget_layout(create) == H5D_VIRTUAL || H5Pget_external_count(create) > 0)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s, %s: its elements are in other files", path,
                        object);
    const int n = H5Pget_nfilters(create);
    for (int i = 0; i < n; i++) {
        unsigned flags = 0;
        size_t values = 0;
        char name[64] = "";
        const H5Z_filter_t id =
            H5Pget_filter2(create, (unsigned)i, &flags, &values, NULL, sizeof name, name, NULL);
        if (id < 0) return H5_FAIL(err, FTH_E_FILE_FORMAT, path, object, "reading its filters");
        if (H5Zfilter_avail(id) > 0) continue;
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            if (known[k].id == id) snprintf(name, sizeof name, "%s", known[k].name);
        const fth_status s = FTH_FAIL(err, FTH_E_FILE_FEATURE,
                                      "%s, %s: it is packed with the filter %s (%d), which libhdf5 "
                                      "does not have here",
                                      path, object, name[0] ? name : "without a name", (int)id);
        fth_err_hint(err,
                     "write the dataset again with gzip, e.g. h5repack -f GZIP=4 old.h5 new.h5");
        return s;
    }
    return FTH_OK;
}

fth_status fth__h5_bill_chunk(fth__h5_dataset *d, hid_t create, uint64_t item, hid_t *access,
                              const char *path, fth_err *err)
{
    *access = H5Pcreate(H5P_DATASET_ACCESS);
    if (*access < 0) return H5_FAIL(err, FTH_E_LIBRARY, path, d->name, "making an access list");
    hsize_t chunk[H5S_MAX_RANK];
    if (H5Pget_layout(create) != H5D_CHUNKED) return FTH_OK;
    const int rank = H5Pget_chunk(create, H5S_MAX_RANK, chunk);
    uint64_t bytes = item;
    for (int a = 0; a < rank; a++)
        if (!fth__mul_u64(bytes, chunk[a], &bytes)) bytes = UINT64_MAX;
    if (rank < 1 || bytes > UINT32_MAX)
        return H5_FAIL(err, FTH_E_FILE_FORMAT, path, d->name, "reading its chunk size");
    FTH_ASSERT(!d->bill);
    /* while a filter packs or unpacks there are its two sides, and the chunk before in the cache */
    d->bill_bytes = H5Pget_nfilters(create) > 0 ? 3 * bytes : bytes;
    FTH_TRY_CTX(fth_mem_take(d->mem, FTH_MEM_DIRECT, d->bill_bytes, "hdf5 chunk", &d->bill, err),
                err, "one chunk of %s, %s", path, d->name);
    if (H5Pset_chunk_cache(*access, 1, (size_t)bytes, 1.0) < 0)
        return H5_FAIL(err, FTH_E_LIBRARY, path, d->name, "setting the chunk cache");
    return FTH_OK;
}

static fth_status take_shape(fth__h5_dataset *d, fth_err *err)
{
    const char *path = d->h5->path;
    d->space = H5Dget_space(d->id);
    const H5S_class_t class = d->space < 0 ? H5S_NO_CLASS : H5Sget_simple_extent_type(d->space);
    if (class != H5S_SIMPLE && class != H5S_SCALAR)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                        "%s, %s: it has no elements at all (a null dataspace)", path, d->name);
    hsize_t dims[H5S_MAX_RANK] = {0};
    const int rank = class == H5S_SCALAR ? 0 : H5Sget_simple_extent_dims(d->space, dims, NULL);
    if (rank < 0) return H5_FAIL(err, FTH_E_FILE_FORMAT, path, d->name, "reading its shape");
    if (rank > FTH_MAX_AXES)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s, %s: it has %d axes; at most %d are read",
                        path, d->name, rank, FTH_MAX_AXES);
    if (d->inner > 0 && rank != 1)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s, %s: a field that is a list in %d axes", path,
                        d->name, rank);
    d->n_axes = rank + d->inner;
    for (int a = 0; a < rank; a++)
        if (!fth__u64_to_i64(dims[a], &d->size[a])) d->size[a] = -1;
    if (fth__shape_check(d->dtype, d->n_axes, d->size, NULL, NULL, NULL) != FTH_OK)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s, %s: its shape has more bytes than 63 bits can count", path, d->name);
    return FTH_OK;
}

/* ---- fields of records ---- */

hid_t fth__h5_member(hid_t type, const char *field, const char *path, const char *object,
                     fth_err *err)
{
    const int k = H5Tget_class(type) == H5T_COMPOUND ? H5Tget_member_index(type, field) : -1;
    if (k >= 0) return H5Tget_member_type(type, (unsigned)k);
    (void)FTH_FAIL(err, FTH_E_FILE_KEY, "%s, %s: it has no field '%s'", path, object, field);
    return -1;
}

hid_t fth__h5_record(const char *field, hid_t member)
{
    const hid_t t = member < 0 ? -1 : H5Tcreate(H5T_COMPOUND, H5Tget_size(member));
    const bool ok = t >= 0 && H5Tinsert(t, field, 0, member) >= 0;
    if (member >= 0) H5Tclose(member);
    if (ok) return t;
    if (t >= 0) H5Tclose(t);
    return -1;
}

/* The dtype of a field, and a record with this field alone to read it with. */
static fth_status map_field(fth__h5_dataset *d, hid_t type, const char *field, fth_err *err)
{
    const char *path = d->h5->path;
    hid_t member = fth__h5_member(type, field, path, d->name, err);
    if (member < 0) return FTH_E_FILE_KEY;
    hsize_t length = 0;
    if (H5Tget_class(member) == H5T_ARRAY) {
        const hid_t element = H5Tget_super(member);
        const bool flat =
            H5Tget_array_ndims(member) == 1 && H5Tget_array_dims2(member, &length) > 0;
        H5Tclose(member);
        member = element;
        if (!flat || element < 0 || !fth__u64_to_i64(length, &d->size[1])) {
            if (element >= 0) H5Tclose(element);
            return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s, %s: the field '%s' has several axes",
                            path, d->name, field);
        }
        d->inner = 1;
    }
    hid_t memory = -1;
    const fth_status s = map_type(member, &d->dtype, &memory, path, d->name, err);
    H5Tclose(member);
    if (s != FTH_OK) return fth_err_note(err, FTH_HERE, s, "field '%s'", field);
    if (d->inner) {
        const hid_t list = H5Tarray_create2(memory, 1, &length);
        H5Tclose(memory);
        memory = list;
    }
    d->type = fth__h5_record(field, memory);
    return d->type < 0 ? H5_FAIL(err, FTH_E_LIBRARY, path, d->name, "making a type") : FTH_OK;
}

/* What stands where the name was looked for: in the group of that name, or in the one around it. */
static void hint_names(hid_t file, const char *name, fth_err *err)
{
    char group[256], list[320], one[128];
    fth__str_copy(group, sizeof group, name);
    hid_t id = H5Gopen2(file, group, H5P_DEFAULT);
    if (id < 0) {
        char *slash = strrchr(group, '/');
        if (slash) *slash = '\0';
        if (!slash || slash == group) fth__str_copy(group, sizeof group, "/");
        id = H5Gopen2(file, group, H5P_DEFAULT);
    }
    if (id < 0) return;
    H5G_info_t info = {.nlinks = 0};
    fth__text t;
    fth__text_init(&t, list, sizeof list);
    if (H5Gget_info(id, &info) < 0) info.nlinks = 0;
    for (hsize_t i = 0; i < info.nlinks && !fth__text_is_cut(&t); i++)
        if (H5Lget_name_by_idx(id, ".", H5_INDEX_NAME, H5_ITER_INC, i, one, sizeof one,
                               H5P_DEFAULT) > 0)
            fth__text_add(&t, "%s%s", i ? ", " : "", one);
    fth__text_mark_cut(&t);
    if (info.nlinks > 0) fth_err_hint(err, "the group '%s' holds: %s", group, list);
    H5Gclose(id);
}

static fth_status open_dataset(fth__h5_dataset *d, const char *name, const char *field,
                               fth_err *err)
{
    const char *path = d->h5->path;
    d->name = fth__heap_strdup(d->mem, name);
    if (!d->name) return FTH_FAIL(err, FTH_E_NOMEM, "no memory to open '%s'", name);
    d->id = H5Dopen2(d->h5->file, name, H5P_DEFAULT);
    if (d->id < 0) {
        (void)H5_FAIL(err, FTH_E_FILE_KEY, path, name, "opening the dataset");
        hint_names(d->h5->file, name, err);
        return FTH_E_FILE_KEY;
    }
    const hid_t type = H5Dget_type(d->id), create = H5Dget_create_plist(d->id);
    hid_t access = -1;
    fth_status s = type < 0 || create < 0
                       ? H5_FAIL(err, FTH_E_FILE_FORMAT, path, name, "reading what it is")
                       : FTH_OK;
    if (s == FTH_OK)
        s = field ? map_field(d, type, field, err)
                  : map_type(type, &d->dtype, &d->type, path, name, err);
    if (s == FTH_OK) s = take_shape(d, err);
    if (s == FTH_OK) s = fth__h5_packed_open(d, create, type, err);
    if (s == FTH_OK && !d->packed) s = fth__h5_check_filters(create, path, name, err);
    if (s == FTH_OK && !d->packed)
        s = fth__h5_check_lzf(d->id, create, H5Tget_size(type), d->mem, path, name, err);
    if (s == FTH_OK && !d->packed)
        s = fth__h5_check_packed(d->id, create, H5Tget_size(type), d->mem, path, name, err);
    if (s == FTH_OK && !d->packed)
        s = fth__h5_bill_chunk(d, create, H5Tget_size(type), &access, path, err);
    if (s == FTH_OK) { /* the size of the cache counts only while opening */
        H5Dclose(d->id);
        d->id = H5Dopen2(d->h5->file, name, access >= 0 ? access : H5P_DEFAULT);
        d->transfer = H5Pcreate(H5P_DATASET_XFER);
        if (d->id < 0 || d->transfer < 0 || H5Pset_type_conv_cb(d->transfer, refuse_range, d) < 0)
            s = H5_FAIL(err, FTH_E_FILE_READ, path, name, "opening the dataset");
    }
    if (access >= 0) H5Pclose(access);
    if (create >= 0) H5Pclose(create);
    if (type >= 0) H5Tclose(type);
    return s;
}

fth_status fth_h5_source(fth_h5 *h5, const char *name, fth_source *out, fth_err *err)
{
    return fth_h5_field_source(h5, name, NULL, out, err);
}

fth_status fth_h5_field_source(fth_h5 *h5, const char *name, const char *field, fth_source *out,
                               fth_err *err)
{
    *out = (fth_source){0};
    if (!name) return FTH_FAIL(err, FTH_E_USAGE, "no dataset was named");
    void *block = NULL;
    FTH_TRY(fth__heap_take(h5->mem, 1, sizeof(fth__h5_dataset), &block, err));
    fth__h5_dataset *d = block;
    *d = (fth__h5_dataset){.opened = {close_source},
                           .mem = h5->mem,
                           .h5 = h5,
                           .id = -1,
                           .type = -1,
                           .space = -1,
                           .transfer = -1};
    atomic_fetch_add_explicit(&h5->refs, 1, memory_order_relaxed);
    const fth__h5_quiet q = fth__h5_enter();
    const fth_status s = open_dataset(d, name, field, err);
    fth__h5_leave(q);
    if (s != FTH_OK) {
        close_source(d);
        return s;
    }
    *out = (fth_source){.kind = "hdf5",
                        .self = d,
                        .dtype = d->dtype,
                        .n_axes = d->n_axes,
                        .read = source_read,
                        .read_rows = d->n_axes > 0 ? source_read_rows : NULL,
                        .libraries = 1u << FTH_LIB_HDF5 | fth__h5_packed_libraries(d),
                        .billed_bytes = d->bill_bytes};
    memcpy(out->size, d->size, sizeof out->size);
    return FTH_OK;
}
