/* job.c - a resolved config, and its frames. */
#include "../experiment/resolve.h"
#include "../image/smv_header.h"
#include "../settings/settings.h"
#include "jobs.h"

#include <string.h>

int br_job_inputs(const fth_config *cfg, br_input_file input[BR_INPUT_FILES])
{
    static const char *const key[BR_INPUT_FILES] = {"crystal.hkl",   "crystal.fdump",
                                                    "crystal.mat",   "beam.sources",
                                                    "detector.mask", "detector.img"};
    int n = 0;
    for (int i = 0; i < BR_INPUT_FILES; i++)
        if (br_given(cfg, key[i]))
            input[n++] = (br_input_file){.key = key[i],
                                         .path = fth_config_text(cfg, key[i]),
                                         .written = fth_config_peek(cfg, key[i])};
    return n;
}

int64_t br_frame_count(const fth_config *cfg)
{
    const int64_t stills = fth_config_int(cfg, "stills.count");
    return stills > 0 ? stills : fth_config_int(cfg, "scan.frames");
}

const char *const br_frame_keys[BR_FRAME_FILES] = {[BR_FLOAT] = "output.float",
                                                   [BR_INT] = "output.int",
                                                   [BR_NOISE] = "output.noise",
                                                   [BR_PGM] = "output.pgm",
                                                   [BR_CBF] = "output.cbf"};

static void read_series(br_job *job, const fth_config *cfg)
{
    br_series *s = &job->series;
    const char *dtype = fth_config_text(cfg, "output.dtype");
    *s = (br_series){.stills = fth_config_int(cfg, "stills.count") > 0,
                     .frames = br_frame_count(cfg),
                     .phi = fth_config_real(cfg, "scan.phi"),
                     .osc = fth_config_real(cfg, "scan.osc"),
                     .seed = fth_config_int(cfg, "stills.seed"),
                     .spread = fth_config_real(cfg, "stills.spread"),
                     .counts = fth_config_bool(cfg, "output.counts"),
                     .gzip = (int)fth_config_int(cfg, "output.gzip")};
    if (!fth_dtype_parse(dtype, &s->dtype)) s->dtype = s->counts ? FTH_I32 : FTH_F32;
    for (int k = 0; k < BR_FRAME_FILES; k++)
        job->wanted[k] = fth_config_bool(cfg, br_frame_keys[k]);
}

fth_status br_job_open(br_job *job, const fth_stage_call *call, fth_err *err)
{
    br_flags flags;
    memset(job, 0, sizeof *job);
    job->call = call;
    read_series(job, call->config);
    job->n_inputs = br_job_inputs(call->config, job->input);
    FTH_TRY(br_job_flags(&flags, call->config, err));
    FTH_TRY(br_experiment_resolve(&job->base, fth_context_mem(call->context), &flags, err));
    job->base.material = fth_config_text(call->config, "detector.material");
    return FTH_OK;
}

void br_job_close(br_job *job)
{
    br_job_release(job);
    if (job->fact) fth_mem_release(fth_context_mem(job->call->context), job->fact, NULL);
    br_experiment_clear(&job->base);
    memset(job, 0, sizeof *job);
}

static uint64_t add_tensor(uint64_t hash, fth_tensor *t)
{
    return t ? fth_hash_bytes(fth_tensor_data(t), (size_t)fth_tensor_bytes(t), hash) : hash;
}

/* Angles of later frames may have more digits than those of the first. */
static void set_header_bytes(br_job *job)
{
    br_smv_head head;
    job->header_bytes = BR_HEADER;
    if (job->base.compat_c || !(job->wanted[BR_INT] || job->wanted[BR_NOISE])) return;
    for (int64_t i = 0; i < job->series.frames; i++) {
        br_experiment e;
        br_job_place(job, i, &e);
        br_smv_header(&e, 16, job->header_bytes, &head);
        job->header_bytes = head.bytes;
    }
}

fth_status br_job_start(br_job *job, fth_err *err)
{
    fth_mem *mem = fth_context_mem(job->call->context);
    void *block = NULL;
    for (int i = 0; i < job->n_inputs; i++)
        FTH_TRY(fth_file_hash(mem, job->input[i].path, &job->input[i].hash, err));
    const char *version = fth_version();
    uint64_t h = fth_hash_bytes(version, strlen(version), 0);
    const int algorithm = job->call->stage->algorithm;
    h = fth_hash_bytes(&algorithm, sizeof algorithm, h);
    h = add_tensor(h, job->base.table);
    h = add_tensor(h, job->base.source);
    h = add_tensor(h, job->base.mosaic_rotation);
    for (int i = 0; i < job->n_inputs; i++) /* the mask is streamed, and only here */
        h = fth_hash_bytes(&job->input[i].hash, sizeof job->input[i].hash, h);
    const br_outputs *o = &job->base.out;
    const double number[3] = {o->int_scale, o->pgm_scale, o->adc};
    set_header_bytes(job);
    int64_t choice[3 + BR_FRAME_FILES] = {job->series.counts, job->series.dtype, job->header_bytes};
    for (int k = 0; k < BR_FRAME_FILES; k++) choice[3 + k] = job->wanted[k];
    h = fth_hash_bytes(number, sizeof number, h);
    if (job->wanted[BR_CBF]) { /* used only for its header */
        const double beam[2] = {job->base.exposure, job->base.flux};
        h = fth_hash_bytes(beam, sizeof beam, h);
        h = fth_hash_bytes(job->base.material, strlen(job->base.material), h);
    }
    job->fingerprint = fth_hash_bytes(choice, sizeof choice, h);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, (uint64_t)job->series.frames * sizeof(br_fact),
                         "frames", &block, err));
    job->fact = memset(block, 0, (size_t)job->series.frames * sizeof(br_fact));
    return FTH_OK;
}

/* ---- frames ---- */

void br_job_place(const br_job *job, int64_t i, br_experiment *out)
{
    *out = job->base;
    const br_shot shot = br_series_shot(&job->series, &job->base, i);
    br_shot_apply(&job->series, &shot, out);
    out->shot = i;
    if (br_has(&out->scene, BR_QUIRK_SHARED_RAN1)) { /* one serial stream */
        out->noise_seed -= i;
        out->random.seed = out->noise_seed;
    }
}

fth_status br_job_frame(const br_job *job, int64_t i, br_experiment *out, fth_err *err)
{
    br_job_place(job, i, out);
    return br_chain_start(&out->scene, out->param, fth_tensor_data(out->source), &out->mask,
                          out->mem, &out->scene.chain_start, err);
}

uint64_t br_job_fingerprint(const br_job *job, const br_experiment *frame)
{
    const int64_t noise[2] = {frame->noise_seed, frame->shot};
    uint64_t h = fth_hash_bytes(&frame->scene, sizeof frame->scene, job->fingerprint);
    h = fth_hash_bytes(frame->param, sizeof frame->param, h);
    return fth_hash_bytes(noise, sizeof noise, h);
}
