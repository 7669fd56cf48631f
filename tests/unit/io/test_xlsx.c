/* test_xlsx.c - workbooks: every kind of cell, what is refused, what we write, a real plate.
 * seconds: 2 */
#include "io/zip.h"
#include "mem/inject.h"
#include "testing/io/files.h"
#include "testing/test.h"

#include <fathom/files.h>
#include <fathom/xlsx.h>

#include <math.h>

#define BOOK                                                                                       \
    "<workbook xmlns=\"m\" xmlns:r=\"o\"><sheets><sheet name=\"one\" sheetId=\"7\" "               \
    "r:id=\"rId3\"/>"                                                                              \
    "<sheet name=\"&lt;two&gt; \xc3\xa4\" sheetId=\"8\" r:id=\"rId1\"/></sheets></workbook>"
#define RELATIONS                                                                                  \
    "<Relationships><Relationship Id=\"rId1\" Type=\"x/worksheet\" Target=\"/xl/b.xml\"/>"         \
    "<Relationship Id=\"rId3\" Type=\"x/worksheet\" Target=\"worksheets/a.xml\"/>"                 \
    "<Relationship Id=\"rId9\" Type=\"x/sharedStrings\" Target=\"texts.xml\"/></Relationships>"
#define TEXTS                                                                                      \
    "<sst><si><t>plain</t></si><si><r><t xml:space=\"preserve\">rich </t></r><r><rPr><b/></rPr>"   \
    "<t>text</t></r><rPh><t>left out</t></rPh></si><si><t/></si></sst>"
#define SHEET(cells) "<worksheet><sheetData>" cells "</sheetData></worksheet>"

/* A workbook of our own documents; NULL leaves one out. */
static const char *make(fth_mem *mem, const char *book, const char *relations, const char *texts,
                        const char *sheet)
{
    const struct {
        const char *name, *text;
    } member[] = {{"xl/workbook.xml", book},
                  {"xl/_rels/workbook.xml.rels", relations},
                  {"xl/texts.xml", texts},
                  {"xl/worksheets/a.xml", sheet},
                  {"xl/b.xml", SHEET("")}};
    const char *path = t_temp_path("book.xlsx");
    fth__zip_out z;
    OK(fth__zip_create(&z, mem, path, NULL));
    for (int i = 0; i < 5; i++)
        if (member[i].text)
            OK(fth__zip_add(&z, member[i].name, member[i].text, strlen(member[i].text), NULL));
    OK(fth__zip_commit(&z, NULL));
    return path;
}

static void is_cell(const fth_xlsx *b, int64_t sheet, int64_t row, int64_t column,
                    fth_cell_kind kind, const char *text, double number)
{
    const fth_cell c = fth_xlsx_get(b, sheet, row, column);
    EQ_I64(c.kind, kind);
    EQ_STR(c.text, text);
    EQ_F64(c.number, number);
}

TEST(every_kind_of_cell)
{
    fth_mem *mem = t_mem(8 << 20);
    fth_err err = {0};
    fth_xlsx *b = NULL;
    const char *path =
        make(mem, BOOK, RELATIONS, TEXTS,
             SHEET("<row r=\"2\"><c r=\"B2\" t=\"s\"><v>0</v></c><c t=\"s\"><v>1</v></c>"
                   "<c r=\"AA2\" t=\"str\"><f>A1</f><v>of a formula</v></c></row>"
                   "<row><c><v>3.50</v></c><c r=\"B3\" t=\"n\"><f>1+1</f><v>2</v></c>"
                   "<c r=\"C3\" t=\"b\"><v>1</v></c><c r=\"D3\" t=\"e\"><v>#N/A</v></c>"
                   "<c r=\"E3\" t=\"inlineStr\"><is><t>in</t><r><t>line</t></r></is></c>"
                   "<c r=\"F3\" s=\"4\"/><c r=\"G3\" t=\"s\"><v>2</v></c></row>"));
    OKE(fth_xlsx_open(&b, mem, path, &err), &err);
    EQ_I64(fth_xlsx_count(b), 2);
    EQ_STR(fth_xlsx_name(b, 1), "<two> \xc3\xa4");
    EQ_PTR(fth_xlsx_name(b, 2), NULL);
    EQ_I64(fth_xlsx_find(b, "one"), 0);
    EQ_I64(fth_xlsx_find(b, "One"), -1);
    is_cell(b, 0, 1, 1, FTH_CELL_TEXT, "plain", (double)NAN);
    is_cell(b, 0, 1, 2, FTH_CELL_TEXT, "rich text", (double)NAN);
    is_cell(b, 0, 1, 26, FTH_CELL_TEXT, "of a formula", (double)NAN);
    is_cell(b, 0, 2, 0, FTH_CELL_NUMBER, "3.50", 3.5);
    is_cell(b, 0, 2, 1, FTH_CELL_NUMBER, "2", 2);
    is_cell(b, 0, 2, 2, FTH_CELL_BOOL, "TRUE", 1);
    is_cell(b, 0, 2, 3, FTH_CELL_ERROR, "#N/A", (double)NAN);
    is_cell(b, 0, 2, 4, FTH_CELL_TEXT, "inline", (double)NAN);
    is_cell(b, 0, 2, 5, FTH_CELL_EMPTY, "", (double)NAN);
    is_cell(b, 0, 2, 6, FTH_CELL_TEXT, "", (double)NAN);
    is_cell(b, 0, 0, 0, FTH_CELL_EMPTY, "", (double)NAN);
    is_cell(b, 1, 1, 1, FTH_CELL_EMPTY, "", (double)NAN);
    is_cell(b, 9, -1, 1, FTH_CELL_EMPTY, "", (double)NAN);
    int64_t rows, columns;
    fth_xlsx_size(b, 0, &rows, &columns);
    EQ_I64(rows, 3);
    EQ_I64(columns, 27);
    fth_xlsx_size(b, 1, &rows, &columns);
    EQ_I64(rows + columns, 0);
    fth_xlsx_close(b);
    OK(fth_mem_destroy(mem, NULL));
}

/* Programs may write cells and rows as they come. */
TEST(cells_in_any_order)
{
    fth_mem *mem = t_mem(8 << 20);
    fth_xlsx *b = NULL;
    const char *path = make(mem, BOOK, RELATIONS, TEXTS,
                            SHEET("<row r=\"5\"><c r=\"D5\"><v>54</v></c><c r=\"A5\"><v>51</v></c>"
                                  "</row><row r=\"1\"><c r=\"C1\"><v>13</v></c><c r=\"B1\"><v>12"
                                  "</v></c></row><row r=\"3\"><c r=\"E3\"><v>35</v></c></row>"));
    OK(fth_xlsx_open(&b, mem, path, NULL));
    static const int64_t at[5][3] = {{4, 3, 54}, {4, 0, 51}, {0, 2, 13}, {0, 1, 12}, {2, 4, 35}};
    for (int i = 0; i < 5; i++) EQ_F64(fth_xlsx_get(b, 0, at[i][0], at[i][1]).number, at[i][2]);
    fth_xlsx_close(b);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *book, *relations, *texts, *sheet, *says;
        fth_status status;
    } list[] = {
        {NULL, RELATIONS, TEXTS, SHEET(""), "xl/workbook.xml is not there: this is no workbook",
         FTH_E_FILE_FORMAT},
        {BOOK, NULL, TEXTS, SHEET(""), "workbook.xml.rels is not there", FTH_E_FILE_FORMAT},
        {BOOK, RELATIONS, TEXTS, NULL, "xl/worksheets/a.xml is not there", FTH_E_FILE_FORMAT},
        {BOOK, "<Relationships/>", TEXTS, SHEET(""), "sheet 'one' has no entry", FTH_E_FILE_FORMAT},
        {BOOK, RELATIONS, NULL, SHEET("<row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c></row>"),
         "sheet 'one', cell A1: it names a shared string that is not there", FTH_E_FILE_FORMAT},
        {BOOK, RELATIONS, TEXTS, SHEET("<row r=\"1\"><c r=\"AB1\" t=\"s\"><v>3</v></c></row>"),
         "cell AB1", FTH_E_FILE_FORMAT},
        {BOOK, RELATIONS, TEXTS, SHEET("<row r=\"1\"><c r=\"A1\"><v>x</v></c></row>"),
         "cell A1: no number, found \"x\"", FTH_E_FILE_FORMAT},
        {BOOK, RELATIONS, TEXTS, SHEET("<row r=\"1\"><c r=\"1A\"><v>1</v></c></row>"),
         "has a cell at \"1A\"", FTH_E_FILE_FORMAT},
        {BOOK, RELATIONS, TEXTS, SHEET("<row r=\"0\"/>"), "has a row \"0\"", FTH_E_FILE_FORMAT},
        {BOOK, RELATIONS, TEXTS,
         SHEET("<row r=\"1\"><c r=\"A1\"><v>1</v></c><c r=\"A1\"><v>2</v></c></row>"),
         "the cell is there twice", FTH_E_FILE_FORMAT},
        {BOOK, RELATIONS, TEXTS, SHEET("<row r=\"1048577\"><c><v>1</v></c></row>"),
         "too many cells", FTH_E_FILE_FEATURE},
        {BOOK, RELATIONS, "<sst>", SHEET(""), "texts.xml", FTH_E_FILE_FORMAT},
    };
    fth_mem *mem = t_mem(8 << 20);
    for (int i = 0; i < (int)(sizeof list / sizeof list[0]); i++) {
        fth_err err = {0};
        fth_xlsx *b = NULL;
        const char *path = make(mem, list[i].book, list[i].relations, list[i].texts, list[i].sheet);
        IS(fth_xlsx_open(&b, mem, path, &err), list[i].status);
        HAS(err.text, list[i].says);
        EQ_PTR(b, NULL);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* 65 MiB of blanks pack to 64 KiB. */
TEST(an_entry_over_64_mib_is_refused)
{
    enum { BYTES = 65 << 20 };
    fth_mem *mem = t_mem(256 << 20);
    fth_err err = {0};
    fth_xlsx *b = NULL;
    char *text = malloc(BYTES + 1);
    memset(text, ' ', BYTES);
    text[BYTES] = 0;
    const char *path = make(mem, BOOK, RELATIONS, text, SHEET(""));
    free(text);
    IS(fth_xlsx_open(&b, mem, path, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "xl/texts.xml has 68157440 bytes, at most 67108864 are read");
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- writing ---- */

static const fth_cell cells[2][3] = {
    {{FTH_CELL_EMPTY, "", (double)NAN},
     {FTH_CELL_NUMBER, "", 1},
     {FTH_CELL_TEXT, "a < b & \"c\"", (double)NAN}},
    {{FTH_CELL_TEXT, " A\tB\n", (double)NAN}, {FTH_CELL_BOOL, "", 0}, {FTH_CELL_NUMBER, "", -0.1}}};
static const fth_xlsx_sheet sheets[2] = {{"plate & co", 2, 3, cells[0]}, {"empty", 0, 0, NULL}};

TEST(what_is_written_is_read)
{
    fth_mem *mem = t_mem(8 << 20);
    fth_err err = {0};
    fth_xlsx *b = NULL;
    const char *path = t_temp_path("written.xlsx");
    OKE(fth_xlsx_save(mem, path, sheets, 2, &err), &err);
    OKE(fth_xlsx_open(&b, mem, path, &err), &err);
    EQ_I64(fth_xlsx_count(b), 2);
    EQ_STR(fth_xlsx_name(b, 0), "plate & co");
    is_cell(b, 0, 0, 0, FTH_CELL_EMPTY, "", (double)NAN);
    is_cell(b, 0, 0, 1, FTH_CELL_NUMBER, "1", 1);
    is_cell(b, 0, 0, 2, FTH_CELL_TEXT, "a < b & \"c\"", (double)NAN);
    is_cell(b, 0, 1, 0, FTH_CELL_TEXT, " A\tB\n", (double)NAN);
    is_cell(b, 0, 1, 1, FTH_CELL_BOOL, "FALSE", 0);
    is_cell(b, 0, 1, 2, FTH_CELL_NUMBER, "-0.1", -0.1);
    fth_xlsx_close(b);
    const fth_xlsx_sheet bad[] = {{"a/b", 0, 0, NULL}};
    IS(fth_xlsx_save(mem, path, bad, 1, &err), FTH_E_USAGE);
    const fth_xlsx_sheet twice[] = {{"a", 0, 0, NULL}, {"a", 0, 0, NULL}};
    IS(fth_xlsx_save(mem, path, twice, 2, NULL), FTH_E_USAGE);
    OK(fth_mem_destroy(mem, NULL));
}

/* Columns beyond Z and beyond AZ have the names that others look for. */
TEST(many_columns_are_written)
{
    enum { COLUMNS = 800 };
    static fth_cell row[COLUMNS];
    fth_mem *mem = t_mem(8 << 20);
    fth_xlsx *b = NULL;
    const char *path = t_temp_path("wide.xlsx");
    for (int i = 0; i < COLUMNS; i++) row[i] = (fth_cell){FTH_CELL_NUMBER, "", i};
    const fth_xlsx_sheet wide = {"wide", 1, COLUMNS, row};
    OK(fth_xlsx_save(mem, path, &wide, 1, NULL));
    OK(fth_xlsx_open(&b, mem, path, NULL));
    for (int i = 0; i < COLUMNS; i++) EQ_F64(fth_xlsx_get(b, 0, 0, i).number, i);
    fth_xlsx_close(b);
    OK(fth_mem_destroy(mem, NULL));
}

/* The n-th request for memory, then the n-th write fails, for every n. */
TEST(failures_leave_nothing)
{
    fth_mem *mem = t_mem(8 << 20);
    const char *path = t_temp_path("failing.xlsx");
    for (int kind = 0; kind < 2; kind++) {
        OK(fth_path_remove(NULL, path, NULL));
        for (int64_t n = 1;; n++) {
            fth__mem_inject(mem, kind == 0 ? n : 0, kind == 1 ? n : 0);
            const fth_status s = fth_xlsx_save(mem, path, sheets, 2, NULL);
            fth__mem_inject(mem, 0, 0);
            if (s == FTH_OK) break;
            IS_TRUE(!fth_path_exists(path));
            IS_TRUE(n < 500);
        }
    }
    for (int64_t n = 1;; n++) {
        fth_xlsx *b = NULL;
        fth__mem_inject(mem, n, 0);
        const fth_status s = fth_xlsx_open(&b, mem, path, NULL);
        fth__mem_inject(mem, 0, 0);
        fth_xlsx_close(b);
        if (s == FTH_OK) break;
        EQ_PTR(b, NULL);
        IS_TRUE(n < 1000);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_workbook_cut_anywhere_is_refused)
{
    fth_mem *mem = t_mem(8 << 20);
    const char *path = t_temp_path("cut.xlsx");
    size_t n = 0;
    OK(fth_xlsx_save(mem, path, sheets, 2, NULL));
    unsigned char *data = t_file_read(path, &n);
    for (size_t cut = 0; cut < n; cut += 13) {
        fth_xlsx *b = NULL;
        t_file_write(path, data, cut);
        ONE_OF(fth_xlsx_open(&b, mem, path, NULL), FTH_E_FILE_FORMAT, FTH_E_FILE_SHORT);
    }
    free(data);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- a real plate ---- */

/* Every well of a grid sheet is what its column of the expected table says. */
static void check_sheet(const fth_xlsx *b, const char *name, char (*expected)[64])
{
    const int64_t sheet = fth_xlsx_find(b, name);
    IS_TRUE(sheet >= 0);
    for (int64_t row = 0; row < 8; row++)
        for (int64_t column = 0; column < 12; column++) {
            const fth_cell c = fth_xlsx_get(b, sheet, row + 1, column + 1);
            const char *want = expected[row * 12 + column];
            const bool blank = !want[0] || strcmp(want, "nan") == 0;
            if (blank && c.kind == FTH_CELL_EMPTY) continue;
            if (c.kind == FTH_CELL_NUMBER)
                EQ_F64(c.number, atof(want));
            else
                EQ_STR(c.text, want);
        }
}

TEST(a_real_plate)
{
    static const struct {
        const char *sheet;
        int column; /* of the table */
    } list[] = {{"medium", 2},           {"mold_type", 3},
                {"genotype", 4},         {"chem_perturbation", 5},
                {"start_age_hpf", 6},    {"start_age_morph", 7},
                {"embryos_per_well", 8}, {"temperature", 9}};
    const char *path = t_data_path("focus/20250912_well_metadata.xlsx");
    const char *table = t_data_path("focus/20250912_plate_metadata_expected.csv");
    fth_mem *mem = t_mem(16 << 20);
    fth_err err = {0};
    fth_xlsx *b = NULL;
    OKE(fth_xlsx_open(&b, mem, path, &err), &err);
    EQ_I64(fth_xlsx_count(b), 10);
    EQ_STR(fth_xlsx_name(b, 0), "Export Summary");
    for (int k = 0; k < (int)(sizeof list / sizeof list[0]); k++) {
        char expected[96][64], line[1000];
        int n = 0;
        FILE *f = fopen(table, "r");
        IS_TRUE(f && fgets(line, sizeof line, f));
        while (n < 96 && fgets(line, sizeof line, f)) {
            char *at = line;
            for (int i = 0; i < list[k].column; i++) at += strcspn(at, ",") + 1;
            snprintf(expected[n++], 64, "%.*s", (int)strcspn(at, ",\r\n"), at);
        }
        fclose(f);
        EQ_I64(n, 96);
        check_sheet(b, list[k].sheet, expected);
    }
    fth_xlsx_close(b);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
