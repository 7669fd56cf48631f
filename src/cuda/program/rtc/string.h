/* string.h - memcpy is there without it. */
