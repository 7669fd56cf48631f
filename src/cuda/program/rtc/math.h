/* math.h - what the device code takes from it, for a compiler without headers of the system. */
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
