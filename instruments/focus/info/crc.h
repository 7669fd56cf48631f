/* crc.h - the checksum of zip and PNG (polynomial 0xEDB88320), to compare frames with other
 * readers.
 */
#ifndef FOCUS_INFO_CRC_H
#define FOCUS_INFO_CRC_H

#include <stdint.h>

/* Of more bytes behind those that gave `crc`; start with 0. */
uint32_t fo_crc32(uint32_t crc, const void *bytes, uint64_t n);

#endif
