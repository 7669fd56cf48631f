/* test_bragg_smv.c - headers of images: the bytes of the golden ones, and what is read from them.
 * seconds: 1 */
#include "testing/bragg/bragg_scene.h"
#include "testing/io/files.h"

#include "instruments/bragg/experiment/mosaic.h"
#include "instruments/bragg/image/smv_header.h"
#include "instruments/bragg/read/read.h"

#define INPUT(name) "tests/golden/bragg/inputs/" name
#define IMAGE(name) "tests/golden/bragg/public/" name ".int.img"

static br_experiment experiment(br_convention c)
{
    br_experiment e = {.compat_c = true};
    t_scene(&e.scene, e.param, c);
    e.xbeam = e.param[BR_XB];
    e.ybeam = e.param[BR_YB];
    return e;
}

static void same_header(br_experiment *e, const char *path)
{
    br_smv_head head;
    br_place(&e->scene, e->param, &e->placed);
    br_smv_header(e, 16, 0, &head);
    size_t bytes;
    unsigned char *image = t_file_read(path, &bytes);
    EQ_I64(head.bytes, BR_HEADER);
    SAME_BYTES(head.text, image, BR_HEADER);
    free(image);
}

TEST(p01_defaults)
{
    br_experiment e = experiment(BR_MOSFLM);
    e.scene.pixel = 0.8 / 1000;
    e.scene.detsize[0] = e.scene.detsize[1] = 64 * e.scene.pixel;
    e.param[BR_LAM] = 6.2 / 1e10;
    e.param[BR_DIST] = 100.0 / 1000;
    e.xbeam = e.ybeam = e.param[BR_XB] = e.param[BR_YB] = (e.scene.detsize[0] + e.scene.pixel) / 2;
    same_header(&e, IMAGE("p01_simple_cubic"));
}

TEST(p09_to_p13_conventions)
{
    br_experiment e = experiment(BR_XDS);
    e.param[BR_XB] = (30.2 - 0.5) * e.scene.pixel;
    e.param[BR_YB] = (34.7 - 0.5) * e.scene.pixel;
    e.xbeam = e.param[BR_XB];
    e.ybeam = e.param[BR_YB];
    same_header(&e, IMAGE("p09_xds"));
    e = experiment(BR_ADXV);
    same_header(&e, IMAGE("p10_adxv"));
    e = experiment(BR_DENZO);
    same_header(&e, IMAGE("p11_denzo"));
    e = experiment(BR_DIALS);
    e.param[BR_XB] = e.param[BR_YB] = e.scene.detsize[0] / 2;
    e.param[BR_RX] = br_radians(4);
    e.param[BR_RY] = br_radians(-3);
    e.param[BR_RZ] = br_radians(2);
    same_header(&e, IMAGE("p12_dials_rot"));
    e = experiment(BR_MOSFLM);
    e.param[BR_RX] = br_radians(5);
    e.param[BR_RY] = br_radians(3);
    e.param[BR_RZ] = br_radians(-2);
    e.param[BR_TT] = br_radians(15);
    same_header(&e, IMAGE("p13_mosflm_tilt_2theta"));
}

/* Geometry of a mask: its Y is flipped. */
TEST(p35_from_the_header_of_a_mask)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    br_image_header h;
    OKE(br_image_header_read(&h, mem, INPUT("mask64.img"), true, &err), &err);
    EQ_I64(h.fast, 64);
    EQ_I64(h.bytes, 512);
    br_experiment e = experiment(BR_MOSFLM);
    e.scene.pixel = h.pixel;
    e.param[BR_DIST] = h.distance;
    e.param[BR_LAM] = h.lambda;
    e.xbeam = e.param[BR_XB] = h.xbeam;
    e.ybeam = e.param[BR_YB] = e.scene.detsize[1] - h.ybeam;
    same_header(&e, IMAGE("p35_roi_mask"));
    OKE(fth_mem_destroy(mem, &err), &err);
}

TEST(p43_from_the_header_of_an_image)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    br_image_header h;
    OKE(br_image_header_read(&h, mem, INPUT("header48x64.img"), true, &err), &err);
    br_experiment e = experiment(BR_MOSFLM);
    e.scene.fast = h.fast;
    e.scene.slow = h.slow;
    e.scene.pixel = h.pixel;
    e.scene.detsize[0] = 48 * h.pixel;
    e.param[BR_DIST] = h.distance;
    e.param[BR_LAM] = h.lambda;
    e.xbeam = e.param[BR_XB] = h.xbeam;
    e.ybeam = e.param[BR_YB] = h.ybeam;
    e.param[BR_PHI] = h.phi;
    e.osc = h.osc;
    same_header(&e, IMAGE("p43_img_header"));
    OKE(fth_mem_destroy(mem, &err), &err);
}

/* Numbers with so many digits that the text has 520 bytes; nanoBragg's own command line for it is
 * -distance 231.27466 -lambda 0.97918 -Xbeam 21.742295 -Ybeam 21.907080 -phi 12.3 -osc 0.1. */
static br_experiment of_many_digits(bool compat_c)
{
    br_experiment e = experiment(BR_MOSFLM);
    e.compat_c = compat_c;
    e.out.adc = 40;
    e.scene.fast = 246;
    e.scene.slow = 252;
    e.scene.pixel = 0.172 / 1000;
    e.scene.detsize[0] = 246 * e.scene.pixel;
    e.scene.detsize[1] = 252 * e.scene.pixel;
    e.param[BR_LAM] = 0.97918 / 1e10;
    e.param[BR_DIST] = 231.27466 / 1000;
    e.xbeam = e.param[BR_XB] = 21.742295 / 1000;
    e.ybeam = e.param[BR_YB] = 21.907080 / 1000;
    e.param[BR_PHI] = br_radians(12.3);
    e.osc = br_radians(0.1);
    br_place(&e.scene, e.param, &e.placed);
    return e;
}

#define MANY_DIGITS                                                                                \
    "DIM=2;\nBYTE_ORDER=little_endian;\nTYPE=unsigned_short;\nSIZE1=246;\nSIZE2=252;\n"            \
    "PIXEL_SIZE=0.172;\nDISTANCE=231.275;\nWAVELENGTH=0.97918;\nBEAM_CENTER_X=21.7423;\n"          \
    "BEAM_CENTER_Y=21.9071;\nADXV_CENTER_X=21.9931;\nADXV_CENTER_Y=21.5157;\n"                     \
    "MOSFLM_CENTER_X=21.7423;\nMOSFLM_CENTER_Y=21.9071;\nDENZO_X_BEAM=21.8283;\n"                  \
    "DENZO_Y_BEAM=21.9931;\nDIALS_ORIGIN=-21.9931,21.8283,-231.275\nXDS_ORGX=128.367;\n"           \
    "XDS_ORGY=127.409;\nCLOSE_DISTANCE=231.275;\nPHI=12.3;\nOSC_START=12.3;\nOSC_RANGE=0.1;\n"     \
    "TWOTHETA=0;\n"

/* nanoBragg says 512, writes all of its text and blanks only up to 512. */
TEST(a_text_of_more_than_512_bytes_runs_on_in_c_mode)
{
    static const char want[] =
        "{\nHEADER_BYTES=512;\n" MANY_DIGITS "DETECTOR_SN=000;\nBEAMLINE=fake;\n}\f";
    br_smv_head head;
    const br_experiment e = of_many_digits(true);
    br_smv_header(&e, 16, 0, &head);
    EQ_I64(head.bytes, (int64_t)sizeof want - 1);
    IS_TRUE(head.bytes > 512);
    SAME_BYTES(head.text, want, sizeof want - 1);
    br_smv_header(&e, 16, 4096, &head); /* a series does not change it */
    EQ_I64(head.bytes, (int64_t)sizeof want - 1);
}

TEST(a_text_of_more_than_512_bytes_has_the_next_multiple_in_spec_mode)
{
    static const char want[] = "{\nHEADER_BYTES=1024;\n" MANY_DIGITS
                               "ADC_OFFSET=40;\nDETECTOR_SN=000;\nBEAMLINE=fake;\n}\f";
    br_smv_head head;
    const br_experiment e = of_many_digits(false);
    br_smv_header(&e, 16, 0, &head);
    EQ_I64(head.bytes, 1024);
    SAME_BYTES(head.text, want, sizeof want - 1);
    for (size_t i = sizeof want - 1; i < 1024; i++) EQ_I64(head.text[i], ' ');
    br_smv_header(&e, 16, 1025, &head);
    EQ_I64(head.bytes, 1536);
    EQ_I64(atoi(strchr(head.text, '=') + 1), 1536);
    br_experiment brief = of_many_digits(false);
    brief.param[BR_DIST] = 0.2;
    brief.param[BR_PHI] = brief.osc = 0;
    brief.xbeam = brief.ybeam = brief.param[BR_XB] = brief.param[BR_YB] = 0.02;
    br_place(&brief.scene, brief.param, &brief.placed);
    br_smv_header(&brief, 16, 0, &head);
    EQ_I64(head.bytes, 512);
    EQ_I64(atoi(strchr(head.text, '=') + 1), 512);
    br_smv_header(&brief, 16, 1024, &head); /* as long as that of the other frames */
    EQ_I64(head.bytes, 1024);
    EQ_I64(atoi(strchr(head.text, '=') + 1), 1024);
}

TEST(wide_pixels_have_a_type_that_other_programs_know)
{
    for (int c = 0; c < 2; c++) {
        br_smv_head head;
        const br_experiment e = of_many_digits(c);
        br_smv_header(&e, 32, 0, &head);
        head.text[head.bytes] = 0;
        HAS(head.text, "\nTYPE=long_integer;\n");
        HAS(head.text, "\nData_type=long int;\n");
        br_smv_header(&e, 16, 0, &head);
        head.text[head.bytes] = 0;
        HAS_NOT(head.text, "Data_type");
        IS_TRUE((strstr(head.text, "ADC_OFFSET=40;") == NULL) == (c == 1));
    }
    br_smv_head head;
    br_experiment e = of_many_digits(false);
    e.out.adc = 39.6; /* a reader that takes whole numbers has the next one */
    br_smv_header(&e, 16, 0, &head);
    head.text[head.bytes] = 0;
    HAS(head.text, "ADC_OFFSET=40;");
}

/* No number is so long that there is no header for it. */
TEST(numbers_of_any_length_have_a_header)
{
    br_experiment e = experiment(BR_MOSFLM);
    br_smv_head head;
    e.param[BR_RX] = 0.123456;
    e.param[BR_TT] = -0.0123456;
    e.scene.fast = e.scene.slow = 2123456789;
    e.scene.pixel = e.scene.detsize[1] = 1.23456e-300;
    e.param[BR_XB] = e.param[BR_YB] = -1.23456e-200;
    e.xbeam = e.ybeam = e.osc = -1.23456e-200;
    e.param[BR_LAM] = -1.23456e-288;
    br_place(&e.scene, e.param, &e.placed);
    for (int c = 0; c < 2; c++) {
        e.compat_c = c;
        br_smv_header(&e, 32, 0, &head);
        IS_TRUE(head.bytes > 512 && head.bytes < BR_HEADER_MOST);
        const char *end = memchr(head.text, '}', sizeof head.text);
        IS_TRUE(end && end[1] == '\f' && end + 2 - head.text <= head.bytes);
    }
}

static const char *file(const char *header, size_t bytes)
{
    char *text = malloc(bytes);
    memset(text, ' ', bytes);
    memcpy(text, header, strlen(header) < bytes ? strlen(header) : bytes);
    const char *path = t_temp_path("image.img");
    t_file_write(path, text, bytes);
    free(text);
    return path;
}

/* model 14.2: DISTANCE is found in CLOSE_DISTANCE, and PHI in a comment, when substrings count. */
TEST(keys_by_last_substring_or_exactly)
{
    static const char text[] = "{\nHEADER_BYTES= 512;\n SIZE1 = 3;SIZE2=2;\nPIXEL_SIZE=0.1;\n"
                               "DISTANCE=100;\nCLOSE_DISTANCE=99;\nXDS_ORGX=7.5;\n"
                               "PHI=10;\nCOMMENT=PHI here=20;\nBYTE_ORDER=big_endian;\n"
                               "DETECTOR_TYPE=CCD;\n}\n";
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    br_image_header h;
    OKE(br_image_header_read(&h, mem, file(text, 512), true, &err), &err);
    EQ_I64(h.fast, 3);
    EQ_I64(h.slow, 2);
    EQ_F64(h.distance, 99.0 / 1000);
    EQ_F64(h.close_distance, 99.0 / 1000);
    EQ_F64(h.org[0], 7.5);
    EQ_F64(h.phi, br_radians(20));
    IS_TRUE(isnan(h.lambda) && isnan(h.org[1]) && isnan(h.osc));
    IS_TRUE(h.big_endian && h.is_u16);
    OKE(br_image_header_read(&h, mem, file(text, 512), false, &err), &err);
    EQ_I64(h.fast, 3);
    EQ_I64(h.slow, 2);
    EQ_F64(h.distance, 0.1);
    EQ_F64(h.close_distance, 99.0 / 1000);
    IS_TRUE(isnan(h.org[0]));
    EQ_F64(h.phi, br_radians(10));
    OKE(br_image_header_read(&h, mem, file("{\nHEADER_BYTES=99;\nDETECTOR_DIMENSIONS=77;\n", 99),
                             false, &err),
        &err);
    EQ_I64(h.fast, 77);
    EQ_I64(h.slow, 77);
    OKE(fth_mem_destroy(mem, &err), &err);
}

/* What atof makes of it is what the reference takes. */
TEST(values_that_are_no_numbers_are_0_by_substring)
{
    static const char text[] = "{\nHEADER_BYTES=64;\nDISTANCE=far;\nWAVELENGTH";
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    br_image_header h;
    OKE(br_image_header_read(&h, mem, file(text, 64), true, &err), &err);
    EQ_F64(h.distance, 0);
    EQ_F64(h.lambda, 0);
    IS_TRUE(isnan(h.phi));
    OKE(fth_mem_destroy(mem, &err), &err);
}

TEST(files_that_are_no_images)
{
    static const struct wrong {
        const char *text, *part;
        size_t bytes;
    } wrong[] = {{"", "SMV", 0},
                 {"P5 64 64", "SMV", 600},
                 {"{\nHEADER_BYTES=512;\nSIZE1=3;\n", "512 bytes, the file has 400", 400},
                 {"{\nHEADER_BYTES=-5;\n", "HEADER_BYTES", 512},
                 {"{\nHEADER_BYTES=999999999999999999999;\n", "HEADER_BYTES", 512},
                 {"{\nHEADER_BYTES", "HEADER_BYTES", 512},
                 {"{\nHEADER_BYTES=512;\nSIZE1=-3;\n", "SIZE1", 512},
                 {"{\nHEADER_BYTES=512;\nSIZE2=1e300;\n", "SIZE2", 512},
                 {"{\nHEADER_BYTES=512;\nDISTANCE=far;\n", "DISTANCE", 512}};
    fth_mem *mem = t_mem(1 << 20);
    br_image_header h;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fth_err err = {0};
        const char *path = file(wrong[i].text, wrong[i].bytes);
        ONE_OF(br_image_header_read(&h, mem, path, false, &err), FTH_E_FILE_FORMAT,
               FTH_E_FILE_SHORT);
        HAS(err.text, wrong[i].part);
        HAS(err.text, "image.img");
    }
    IS(br_image_header_read(&h, mem, t_temp_path("none"), true, NULL), FTH_E_FILE_OPEN);
    fth_err err = {0};
    OKE(fth_mem_destroy(mem, &err), &err);
}

TEST(pixels_in_both_byte_orders)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    char text[64 + 12] = "{\nHEADER_BYTES=64;\nSIZE1=3;\nSIZE2=2;\nBYTE_ORDER=big_endian;\n}";
    for (int big = 1; big >= 0; big--) {
        if (!big) memcpy(strstr(text, "big_endian"), "little_end", 10);
        for (int i = 0; i < 6; i++) {
            text[64 + 2 * i + big] = (char)i;
            text[64 + 2 * i + !big] = 1;
        }
        const char *path = t_temp_path("image.img");
        t_file_write(path, text, sizeof text);
        br_image_header h;
        fth_source s;
        fth_tensor *t;
        OKE(br_image_header_read(&h, mem, path, false, &err), &err);
        OKE(br_image_open(&s, mem, path, &h, &err), &err);
        EQ_I64(s.size[0], 2);
        OKE(fth_source_load(&s, mem, "image", &t, &err), &err);
        for (int i = 0; i < 6; i++) EQ_I64(((uint16_t *)fth_tensor_data(t))[i], 256 + i);
        fth_tensor_release(t);
        fth_source_close(&s);
        t_file_write(path, text, sizeof text - 1);
        IS(br_image_open(&s, mem, path, &h, NULL), FTH_E_FILE_SHORT);
        h.is_u16 = false;
        IS(br_image_open(&s, mem, path, &h, NULL), FTH_E_FILE_FEATURE);
        h = (br_image_header){.is_u16 = true};
        IS(br_image_open(&s, mem, path, &h, NULL), FTH_E_FILE_FORMAT);
    }
    OKE(fth_mem_destroy(mem, &err), &err);
}

/* Pixels 1000, 1001, ... behind a header. */
static const char *image_of(const br_smv_head *head, int64_t pixels)
{
    const size_t bytes = (size_t)head->bytes + 2 * (size_t)pixels;
    unsigned char *file_bytes = malloc(bytes);
    memcpy(file_bytes, head->text, (size_t)head->bytes);
    for (int64_t i = 0; i < pixels; i++) {
        file_bytes[head->bytes + 2 * i] = (unsigned char)(1000 + i);
        file_bytes[head->bytes + 2 * i + 1] = (unsigned char)((1000 + i) >> 8);
    }
    const char *path = t_temp_path("image.img");
    t_file_write(path, file_bytes, bytes);
    free(file_bytes);
    return path;
}

static void pixels_are_found(const br_smv_head *head, bool substring, br_image_header *h)
{
    fth_mem *mem = t_mem(4 << 20);
    fth_err err = {0};
    fth_source s;
    fth_tensor *t;
    const char *path = image_of(head, 246 * 252);
    OKE(br_image_header_read(h, mem, path, substring, &err), &err);
    EQ_I64(h->bytes, head->bytes);
    OKE(br_image_open(&s, mem, path, h, &err), &err);
    OKE(fth_source_load(&s, mem, "image", &t, &err), &err);
    for (int64_t i = 0; i < 246 * 252; i++)
        EQ_I64(((uint16_t *)fth_tensor_data(t))[i], (1000 + i) & 65535);
    fth_tensor_release(t);
    fth_source_close(&s);
    OKE(fth_mem_destroy(mem, &err), &err);
}

TEST(long_headers_of_both_modes_are_read)
{
    br_smv_head head;
    br_image_header h;
    br_experiment e = of_many_digits(false);
    br_smv_header(&e, 16, 0, &head);
    for (int substring = 0; substring < 2; substring++) {
        pixels_are_found(&head, substring, &h);
        EQ_F64(h.phi, 12.3 / BR_RTD);
        EQ_F64(h.osc, 0.1 / BR_RTD);
    }
    e = of_many_digits(true);
    e.param[BR_TT] = br_radians(-1.23456); /* the last keys lie behind the 512 bytes */
    e.param[BR_RX] = 0.0123456;
    e.param[BR_RZ] = 0.0123456;
    e.param[BR_PHI] = br_radians(-112.345);
    e.osc = br_radians(0.123456);
    e.xbeam = e.ybeam = e.param[BR_XB] = e.param[BR_YB] = -1.23456e-8;
    e.param[BR_DIST] = -1.23456e-8;
    e.param[BR_LAM] = 1.23456e-15;
    br_place(&e.scene, e.param, &e.placed);
    br_smv_header(&e, 16, 0, &head);
    IS_TRUE(head.bytes > 512 && strstr(head.text, "OSC_RANGE") > head.text + 512);
    pixels_are_found(&head, false, &h);
    EQ_F64(h.osc, 0.123456 / BR_RTD);
    pixels_are_found(&head, true, &h); /* nanoBragg sees 512 bytes of it */
    IS_TRUE(isnan(h.osc));
}

/* '}' as the last byte of a header of 512, and a first pixel of 12: that is not the end of a text
 * that runs on. The size of the file tells. */
TEST(pixels_that_look_like_the_end_of_a_header_are_pixels)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    br_image_header h;
    char bytes[512 + 12] = "{\nHEADER_BYTES=512;\nSIZE1=3;\nSIZE2=2;\nTYPE=unsigned_short;\n";
    memset(bytes + strlen(bytes), ' ', 511 - strlen(bytes));
    bytes[511] = '}';
    bytes[512] = '\f';
    const char *path = t_temp_path("image.img");
    t_file_write(path, bytes, sizeof bytes);
    OKE(br_image_header_read(&h, mem, path, false, &err), &err);
    EQ_I64(h.bytes, 512);
    char longer[513 + 12] = {0};
    memcpy(longer, bytes, sizeof bytes);
    t_file_write(path, longer, sizeof longer); /* one byte more: it does run on */
    OKE(br_image_header_read(&h, mem, path, false, &err), &err);
    EQ_I64(h.bytes, 513);
    OKE(fth_mem_destroy(mem, &err), &err);
}

/* A run takes the parameters as they are when it starts. */
TEST(inputs_of_a_graph)
{
    fth_err err = {0};
    fth_context *ctx;
    OKE(fth_context_create(&ctx, NULL, &err), &err);
    fth_mem *mem = fth_context_mem(ctx);
    br_experiment e = experiment(BR_MOSFLM);
    e.mem = mem;
    OKE(fth_tensor_create(&e.source, mem, "sources", FTH_F64, 2, ((int64_t[2]){2, BR_SRC_COLUMNS}),
                          &err),
        &err);
    memset(fth_tensor_data(e.source), 0, fth_tensor_bytes(e.source));
    int64_t seed = -1;
    br_ran1_clear(&e.random);
    OKE(br_mosaic_make(&e.mosaic_rotation, mem, 3, 0.01, &e.random, &seed, &err), &err);
    br_image_header h;
    OKE(br_image_header_read(&h, mem, INPUT("mask64.img"), true, &err), &err);
    OKE(br_image_open(&e.mask, mem, INPUT("mask64.img"), &h, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    const br_inputs in = br_experiment_inputs(g, &e);
    char text[100];
    EQ_STR(fth_val_format(in.param, text, sizeof text), "param f64 [param=19]");
    EQ_STR(fth_val_format(in.table, text, sizeof text), "table f64 [h=1 k=1 l=1]");
    EQ_STR(fth_val_format(in.source, text, sizeof text), "source f64 [source=2 source_column=6]");
    EQ_STR(fth_val_format(in.mosaic_rotation, text, sizeof text),
           "mosaic_rotation f64 [mosaic=3 nine=9]");
    EQ_STR(fth_val_format(in.mask, text, sizeof text), "mask u16 [slow=64 fast=64]");
    const fth_val outs[2] = {fth_sum(in.param, "param"), fth_sum(in.table, "h k l")};
    fth_plan *plan = fth_plan_make(g, outs, 2, NULL, &err);
    IS_TRUE(plan != NULL);
    double sum[2] = {0}, want = 0;
    const fth_sink sinks[2] = {fth_scalar_sink(FTH_F64, &sum[0]),
                               fth_scalar_sink(FTH_F64, &sum[1])};
    memset(e.param, 0, sizeof e.param);
    for (int run = 0; run < 2; run++) {
        e.param[BR_A] = 100;
        e.param[BR_TT] = 5 + run;
        want = 105 + run;
        OKE(fth_run(plan, sinks, NULL, NULL, &err), &err);
        EQ_F64(sum[0], want);
        EQ_F64(sum[1], 0);
    }
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    br_experiment_clear(&e);
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST_MAIN()
