/* image_name.h - well, time point and channel from the name of a fused image. */
#ifndef FOCUS_EXPERIMENT_IMAGE_NAME_H
#define FOCUS_EXPERIMENT_IMAGE_NAME_H

#include "../plate/well.h"

/* Well and time of a name; false: it is no name of an image. */
bool fo_image_name_parse(const char *name, int *well, int64_t *t);
/* The channel of a name that is one; "" where it says none. */
void fo_image_name_channel(const char *name, char *channel, size_t bytes);

#endif
