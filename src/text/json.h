/* text/json.h - what the reader of JSON and the reader of its files share. */
#ifndef FTH_TEXT_JSON_H
#define FTH_TEXT_JSON_H

enum { FTH__JSON_BYTES = 64 << 20 }; /* of a text; jansson takes up to 100 bytes for each */

#endif
