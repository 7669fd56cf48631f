/* scan.h - a scan: patterns that stay in their file, positions, probe, object, mask, metadata.
 *
 * Every format becomes this one struct: frames [scan row col], centred (zero frequency at N/2),
 * square, N even; positions in pixels of the object, x along columns, y along rows. A pattern at
 * (x, y) shows object columns x - N/2 .. x + N/2 - 1 and rows y - N/2 .. y + N/2 - 1. Opening reads
 * headers, positions and the probe; patterns are read when a consumer asks for them.
 *
 *   pt_scan_options opt;
 *   pt_scan_options_read(cfg, &opt);
 *   opt.random = true;                                      // rows in any order
 *   FTH_TRY(pt_scan_open(&scan, ctx, path, &opt, err));
 *   FTH_TRY(pt_scan_survey(&scan, progress, user, &survey, err)); // NaN, negative, all zero: an
 * error FTH_TRY(pt_scan_view(&scan, PT_COUNTS, FTH_F32, &source, err)); // counts as f32, whatever
 * is kept
 *   ...
 *   pt_scan_close(&scan);
 */
#ifndef PTYCHO_SCAN_H
#define PTYCHO_SCAN_H

#include <fathom/fathom.h>
#include <fathom/files.h>

typedef enum pt_kind { PT_AMPLITUDE, PT_COUNTS } pt_kind; /* amplitude: sqrt of counts */
extern const char *const pt_kind_names[];                 /* "amplitude", "counts" */

typedef enum pt_format {
    PT_NPZ,
    PT_PRODUCT, /* HDF5 as Ptychodus writes it */
    PT_CXI,
    PT_PTYD,        /* HDF5 as ptypy writes it */
    PT_VELOCIPROBE, /* HDF5 of an Eiger, with a table of positions */
    PT_GENERIC,     /* HDF5 with a mapping: keys hdf5.* */
    PT_FORMATS
} pt_format;
extern const char *const pt_format_names[];

/* What numbers the file has; NAN where it does not say. */
typedef struct pt_meta {
    double nphotons; /* of a pattern, on average                               */
    double
        intensity_scale; /* of a simulation: amplitudes in the file times this are sqrt(counts) */
    double energy_eV, distance_m, detector_pixel_m;
    double pixel_m;   /* of the object: given, or wavelength * distance / (N * pitch) */
    int64_t gridsize; /* 0: not known */
    bool electrons;
} pt_meta;

typedef enum pt_mask_rule {
    PT_MASK_AUTO,
    PT_MASK_CXI,  /* 0 is good */
    PT_MASK_GOOD, /* true is good */
    PT_MASK_BAD
} pt_mask_rule;
typedef enum pt_guess {
    PT_GUESS_AUTO, /* that of the file; an NPZ must have one */
    PT_GUESS_FILE,
    PT_GUESS_ESTIMATE, /* from the mean pattern */
    PT_GUESS_DEFAULT
} pt_guess;
typedef enum pt_subset { PT_SUBSET_ALL, PT_SUBSET_ODD, PT_SUBSET_EVEN } pt_subset;
typedef enum pt_units {
    PT_UNITS_AUTO,
    PT_UNITS_M,
    PT_UNITS_MM,
    PT_UNITS_UM,
    PT_UNITS_NM,
    PT_UNITS_PIXEL
} pt_units;

/* Keys of the section DATA. Texts live as long as the config. */
typedef struct pt_scan_options {
    bool random;      /* random access: compressed patterns are unpacked to scratch once */
    bool strict;      /* warnings are errors */
    int kind;         /* pt_kind; -1: as the file says */
    pt_subset subset; /* patterns with odd or even numbers alone */
    int sign;         /* of positions; 0: as the format has it */
    bool flip_x, flip_y, swap_xy;
    double coord_scale;
    pt_mask_rule mask;
    pt_guess guess; /* of the probe; only AUTO and FILE read one */
    bool electrons;
    double energy_eV, distance_m, detector_pixel_m; /* NAN: as the file says */
    int64_t crop, bin;                              /* 0: whole frames; 1: none */
    double centre_x, centre_y;                      /* NAN: half of the frame */
    pt_units position_unit;
    double step;               /* of a raster without positions; NAN: none */
    const char *position_file; /* table of positions; "": none */
    const char *probe_resize;  /* steps of resize.h; "": none */
    const char *data, *mask_path, *x, *y, *distance, *pixel, *energy, *probe; /* hdf5.*; "": none */
    /* Wanted by the config, to compare with the file's metadata; 0 and NAN: not given. */
    int64_t want_N, want_gridsize;
    double want_nphotons;
} pt_scan_options;
void pt_scan_options_read(const fth_config *cfg, pt_scan_options *out);
/* Those of a config without any key. */
pt_scan_options pt_scan_options_default(void);

typedef struct pt_scan {
    fth_context *ctx;
    fth_mem *mem;
    char path[FTH_PATH];
    pt_format format;
    pt_kind kind;              /* of `patterns` */
    bool kind_is_declared;     /* the file or the config says it */
    bool strict;               /* warnings are errors */
    int sign;                  /* that positions were read with */
    char array[64];            /* name of the patterns in the file */
    int64_t n, N;              /* patterns, and the side of one */
    fth_source patterns;       /* [scan row col]: u8 u16 i32 i64 f32 f64 */
    double saturated;          /* count at which a pixel saturates; NAN: unknown */
    double *x, *y;             /* [scan] pixels */
    double *start_x, *start_y; /* [scan] nominal; the same blocks as x, y where there are none */
    int64_t *index;            /* [scan] number of the scan that a pattern is of; NULL: one scan */
    int64_t modes;             /* of the probe; 0: there is none */
    fth_c128 *probe;           /* [mode row col] */
    fth_source object;         /* [orow ocol] c64 or c128; n_axes 0: none. Pixel (0,0) is x=y=0 */
    uint8_t *mask;             /* [row col], 1 is good; NULL: all are */
    fth_source masks;          /* [scan row col] of bool, likewise; n_axes 0: none */
    pt_meta meta;
    fth_texts *notes; /* warnings, a sentence each */
    void *parts;      /* open files and views behind the sources */
} pt_scan;

/* FTH_E_FILE_* names the array, index or both sizes. On failure the scan is closed. */
fth_status pt_scan_open(pt_scan *out, fth_context *ctx, const char *path,
                        const pt_scan_options *opt, fth_err *err);
void pt_scan_close(pt_scan *scan); /* one that did not open, and a cleared one, are allowed */

/* Patterns of a scan as amplitudes or counts of dtype f32 or f64, whatever the file keeps; rows in
 * any order if the scan was opened for that. It lives until the scan is closed, and needs no close.
 * One thread at a time. */
fth_status pt_scan_view(pt_scan *scan, pt_kind kind, fth_dtype dtype, fth_source *out,
                        fth_err *err);

/* One line about choices that the file leaves open: amplitude or counts, and the sign of the
 * positions. Returns `text`. */
const char *pt_scan_choices(const pt_scan *scan, char *text, size_t size);

/* Memory that ends with the scan, zero at first. */
fth_status pt_scan_hold(pt_scan *scan, uint64_t bytes, const char *label, void **out, fth_err *err);

/* What one pass over all patterns finds. */
typedef struct pt_survey {
    double mean_power, max_power; /* of the sum of counts of a pattern (amplitude squared) */
    double max_value;             /* as kept in the file */
    int64_t zero, first_zero;     /* patterns without a photon; -1 */
    int64_t fractional;           /* counts that are no whole number */
    int64_t saturated;            /* pixels that are, or have no value */
} pt_survey;
/* FTH_E_FILE_FORMAT names the first NaN, infinity or negative number, or says that all is zero.
 * Streams through at most 4 MiB; masked pixels are not looked at. `progress` may be NULL. With
 * `warn`, what is unusual goes to scan->notes. */
fth_status pt_scan_survey(pt_scan *scan, fth_progress_fn *progress, void *user, pt_survey *out,
                          fth_err *err);

/* Pixels from a position to the next, about: positions spread evenly over what they cover. */
double pt_scan_spacing(const pt_scan *scan);

/* The object as a new tensor [orow ocol] c128; NULL where the scan has none. */
fth_status pt_scan_load_object(pt_scan *scan, fth_tensor **out, fth_err *err);

/* Positions as the solvers and the network use them: `use_start` for the nominal ones. */
typedef struct pt_extent {
    double min_x, max_x, min_y, max_y;
} pt_extent;
pt_extent pt_scan_extent(const double *x, const double *y, int64_t n);

/* Squared amplitudes of the file times this are photons: the square of a simulation's intensity
 * scale, 1 of measured data. */
double pt_count_factor(const pt_scan *scan);

/* Wavelength in m of photons or electrons of an energy in eV. */
double pt_wavelength(double energy_eV, bool electrons);

#endif
