/* cxi.c - CXI files and those of NXcxi_ptycho: counts, and translations of the sample. */
#include "hdf5.h"

#include <math.h>

#define ENTRY "/entry_1"
#define INSTRUMENT ENTRY "/instrument_1"
#define DETECTOR INSTRUMENT "/detector_1"

static fth_status find(const pt_draft *d, fth_h5 *h5, const char *places, const char *what,
                       char *place, size_t bytes, fth_err *err)
{
    char have[300];
    if (pt_h5_find(h5, places, place, bytes)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_KEY,
                    "%s: a CXI file without %s: there is none of %s; in " ENTRY " there is %s",
                    d->scan->path, what, places, pt_h5_children(h5, ENTRY, have, sizeof have));
}

fth_status pt_read_cxi(pt_draft *d, fth_h5 *h5, fth_err *err)
{
    pt_scan *scan = d->scan;
    pt_meta *m = &scan->meta;
    char data[300], translation[300];
    int64_t n = 0, count = 0;
    double wavelength = (double)NAN;
    FTH_TRY(find(d, h5, ENTRY "/data_1/data " DETECTOR "/data " ENTRY "/data/data", "patterns",
                 data, sizeof data, err));
    FTH_TRY(find(d, h5,
                 ENTRY "/data_1/translation " ENTRY "/sample_1/geometry_1/translation " DETECTOR
                       "/translation " ENTRY "/sample_1/geometry/translation",
                 "translations", translation, sizeof translation, err));
    d->own_sign = -1; /* the sample moves, not the probe */
    FTH_TRY(pt_h5_unit(d, h5, translation, &d->unit_m, err));
    if (d->unit_m < 0) d->unit_m = 1;
    FTH_TRY(pt_h5_column(d, h5, translation, 0, &scan->x, &n, err));
    FTH_TRY(pt_h5_column(d, h5, translation, 1, &scan->y, &count, err));
    scan->start_x = scan->x;
    scan->start_y = scan->y;
    FTH_TRY(pt_h5_number(d, h5,
                         INSTRUMENT "/source_1/energy " INSTRUMENT "/beam_1/energy " INSTRUMENT
                                    "/beam_1/incident_energy",
                         PT_ENERGY, &m->energy_eV, err));
    FTH_TRY(pt_h5_number(d, h5,
                         INSTRUMENT "/beam_1/incident_wavelength " INSTRUMENT
                                    "/beam_1/wavelength " INSTRUMENT "/source_1/wavelength",
                         PT_LENGTH, &wavelength, err));
    if (isnan(m->energy_eV) && wavelength > 0) m->energy_eV = pt_wavelength(1, false) / wavelength;
    FTH_TRY(pt_h5_number(d, h5, DETECTOR "/distance", PT_LENGTH, &m->distance_m, err));
    FTH_TRY(pt_h5_number(d, h5, DETECTOR "/x_pixel_size", PT_LENGTH, &m->detector_pixel_m, err));
    FTH_TRY(pt_h5_patterns(d, h5, data, n, err));
    FTH_TRY(pt_h5_mask(d, h5, DETECTOR "/mask", err));
    FTH_TRY(
        pt_h5_probe(d, h5, INSTRUMENT "/source_1/illumination " INSTRUMENT "/source_1/probe", err));
    return pt_h5_object(d, h5, ENTRY "/image_1/data", err);
}
