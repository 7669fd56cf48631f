/* text/xml.h - small XML documents as a tree: the one file that knows expat is xml.c.
 *
 * Names are without their namespace prefix. Depth and size are limited; entities of the document's
 * own are refused. The tree belongs to the document.
 */
#ifndef FTH_TEXT_XML_H
#define FTH_TEXT_XML_H

#include <fathom/memory.h>

typedef struct fth__xml fth__xml;
typedef struct fth__xml_node fth__xml_node;

/* `label` names the text in errors, which give line and column. */
fth_status fth__xml_parse(fth__xml **out, fth_mem *mem, const char *label, const char *text,
                          uint64_t bytes, fth_err *err);
void fth__xml_free(fth__xml *xml); /* NULL is allowed */
const fth__xml_node *fth__xml_root(const fth__xml *xml);
const char *fth__xml_name(const fth__xml_node *node);
/* First child, or next sibling, of a name; NULL for any name. NULL when there is none; a NULL node
 * has none. */
const fth__xml_node *fth__xml_child(const fth__xml_node *node, const char *name);
const fth__xml_node *fth__xml_next(const fth__xml_node *node, const char *name);
/* Value of an attribute; NULL when there is none. */
const char *fth__xml_attr(const fth__xml_node *node, const char *name);
/* The characters directly inside the element, joined; "" for none. */
const char *fth__xml_text(const fth__xml_node *node);

#endif
