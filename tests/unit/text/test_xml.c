/* test_xml.c - XML documents as trees, and texts that are refused.
 * seconds: 2 */
#include "testing/io/files.h"

#include "mem/inject.h"
#include "text/xml.h"

static fth__xml *parse(fth_mem *mem, const char *text)
{
    fth__xml *xml = NULL;
    fth_err err = {0};
    OKE(fth__xml_parse(&xml, mem, "test", text, strlen(text), &err), &err);
    return xml;
}

static void refused(const char *text, uint64_t bytes, const char *why)
{
    fth_mem *mem = t_mem(1 << 20);
    fth__xml *xml = NULL;
    fth_err err = {0};
    EQ_I64(fth__xml_parse(&xml, mem, "book.xml", text, bytes, &err), FTH_E_FILE_FORMAT);
    IS_TRUE(xml == NULL);
    HAS(err.text, "book.xml");
    HAS(err.text, why);
    OK(fth_mem_destroy(mem, NULL));
}

static const char book[] =
    "<?xml version='1.0' encoding='UTF-8'?>\n"
    "<!-- a comment --><w:book xmlns:w='urn:a' xmlns='urn:b' r:id='far' id='near' w:only='1'>"
    "one <b>bold</b> two <![CDATA[<&>]]> &lt;&#181;&gt;"
    "<c r='A1' t=\"s&quot;\"/><c r='B1'><v>2</v></c><w:c/></w:book>\n";

TEST(a_document_is_a_tree)
{
    fth_mem *mem = t_mem(1 << 20);
    fth__xml *xml = parse(mem, book);
    const fth__xml_node *root = fth__xml_root(xml);
    EQ_STR(fth__xml_name(root), "book");
    EQ_STR(fth__xml_text(root), "one  two <&> <\xc2\xb5>");
    EQ_STR(fth__xml_attr(root, "id"), "near");
    EQ_STR(fth__xml_attr(root, "only"), "1");
    IS_TRUE(fth__xml_attr(root, "w") == NULL && fth__xml_attr(root, "xmlns") == NULL);
    EQ_STR(fth__xml_name(fth__xml_child(root, NULL)), "b");
    const fth__xml_node *c = fth__xml_child(root, "c");
    EQ_STR(fth__xml_attr(c, "r"), "A1");
    EQ_STR(fth__xml_attr(c, "t"), "s\"");
    EQ_STR(fth__xml_text(c), "");
    c = fth__xml_next(c, "c");
    EQ_STR(fth__xml_text(fth__xml_child(c, "v")), "2");
    IS_TRUE(fth__xml_child(c, "w") == NULL && fth__xml_next(c, "v") == NULL);
    c = fth__xml_next(c, NULL);
    EQ_STR(fth__xml_name(c), "c");
    IS_TRUE(fth__xml_next(c, NULL) == NULL && fth__xml_next(root, NULL) == NULL);
    fth__xml_free(xml);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(nothing_has_nothing)
{
    IS_TRUE(fth__xml_child(NULL, NULL) == NULL && fth__xml_next(NULL, "a") == NULL);
    IS_TRUE(fth__xml_attr(NULL, "a") == NULL);
    EQ_STR(fth__xml_text(NULL), "");
    fth__xml_free(NULL);
}

TEST(other_encodings_become_utf8)
{
    fth_mem *mem = t_mem(1 << 20);
    fth__xml *xml = parse(mem, "<?xml version='1.0' encoding='ISO-8859-1'?><a>\xb5m</a>");
    EQ_STR(fth__xml_text(fth__xml_root(xml)), "\xc2\xb5m");
    fth__xml_free(xml);
    OK(fth__xml_parse(&xml, mem, "wide", "\xff\xfe<\0a\0/\0>\0", 10, NULL));
    EQ_STR(fth__xml_name(fth__xml_root(xml)), "a");
    fth__xml_free(xml);
    OK(fth_mem_destroy(mem, NULL));
}

/* Longer than a piece that expat gets, and than a block of the tree. */
TEST(long_texts_and_many_elements)
{
    enum { N = 20000, LONG = 300000 };
    fth_mem *mem = t_mem(1 << 20);
    char *text = malloc(LONG + 40 * N);
    char *at = text + sprintf(text, "<all><long>");
    memset(at, 'x', LONG);
    at += LONG;
    at += sprintf(at, "</long>");
    for (int i = 0; i < N; i++) at += sprintf(at, "<c n='%d'>%d</c>", i, 7 * i);
    at += sprintf(at, "</all>");
    fth__xml *xml = parse(mem, text);
    const fth__xml_node *node = fth__xml_child(fth__xml_root(xml), "long");
    EQ_U64(strlen(fth__xml_text(node)), LONG);
    int64_t n = 0;
    for (node = fth__xml_child(fth__xml_root(xml), "c"); node; node = fth__xml_next(node, "c"), n++)
        EQ_I64(atoi(fth__xml_text(node)), 7 * atoi(fth__xml_attr(node, "n")));
    EQ_I64(n, N);
    fth__xml_free(xml);
    free(text);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_is_no_document_is_refused_with_its_place)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "line 1, column 1: no element found"},
        {"<a>\n <b></a>", "line 2, column 7: mismatched tag"},
        {"<a>&nbsp;</a>", "line 1, column 4: undefined entity"},
        {"<!DOCTYPE a [<!ENTITY e 'e'>]><a>&e;</a>", "declares an entity"},
        {"<!DOCTYPE a SYSTEM 'x.dtd'><a>&e;</a>", "an entity that it does not declare"},
        {"<a/><b/>", "junk after document element"},
        {"<a>\xff</a>", "not well-formed"},
        {"no XML", "syntax error"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(cases[i].text, strlen(cases[i].text), cases[i].why);
}

TEST(limits_of_depth_and_length)
{
    char deep[65 * 3 + 1] = "";
    for (int i = 0; i < 65; i++) strcat(deep, "<a>");
    refused(deep, strlen(deep), "more than 64 elements");
    char most[64 * 7 + 1] = "";
    for (int i = 0; i < 64; i++) strcat(most, "<a>");
    for (int i = 0; i < 64; i++) strcat(most, "</a>");
    fth_mem *mem = t_mem(1 << 20);
    fth__xml_free(parse(mem, most));
    fth__xml *xml = parse(mem, "<a xmlns='x' xmlns:b='y' xmlnsa='z'/>"); /* the last is its own */
    EQ_STR(fth__xml_attr(fth__xml_root(xml), "xmlnsa"), "z");
    EQ_PTR(fth__xml_attr(fth__xml_root(xml), "xmlns"), NULL);
    fth__xml_free(xml);
    OK(fth_mem_destroy(mem, NULL));
    const uint64_t bytes = 3 << 20;
    char *tag = malloc(bytes);
    memset(tag, ' ', bytes);
    memcpy(tag, "<a b='", 6);
    memcpy(tag + bytes - 4, "'/>", 3);
    refused(tag, bytes, "more than 1 MiB");
    free(tag);
    refused("<a/>", (64 << 20) + 1, "more than 64 MiB");
}

TEST(cut_at_every_byte)
{
    fth_mem *mem = t_mem(1 << 20);
    const uint64_t whole = strlen(book) - 1; /* without the line break at the end */
    for (uint64_t n = 0; n <= whole; n++) {
        fth__xml *xml = NULL;
        const fth_status s = fth__xml_parse(&xml, mem, "cut", book, n, NULL);
        EQ_I64(s, n == whole ? FTH_OK : FTH_E_FILE_FORMAT);
        fth__xml_free(xml);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(no_memory_at_any_request)
{
    fth_status s = FTH_E_NOMEM;
    for (int64_t n = 1; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 20);
        fth__xml *xml = NULL;
        fth_err err = {0};
        fth__mem_inject(mem, n, 0);
        s = fth__xml_parse(&xml, mem, "test", book, strlen(book), &err);
        if (s != FTH_OK) EQ_I64(s, FTH_E_NOMEM);
        fth__xml_free(xml);
        OK(fth_mem_destroy(mem, NULL));
    }
}
