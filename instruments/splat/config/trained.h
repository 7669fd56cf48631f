/* trained.h - flags that a command takes from the settings of a training when it is given the
 * folder of that training and not the flags.
 */
#ifndef SPLAT_CONFIG_TRAINED_H
#define SPLAT_CONFIG_TRAINED_H

#include "settings.h"

enum { GS_TRAINED_FLAGS = 24, GS_TRAINED_TEXT = 512 };

/* Looked up in place of the command's own flags: gs_trained_value with this as `user`. */
typedef struct gs_trained {
    fth_flag_value_fn *value; /* of the command */
    void *user;
    char file[FTH_PATH]; /* that they are from; "": of none */
    int n;               /* flags that were taken: not given, and not the default */
    char flag[GS_TRAINED_FLAGS][32], text[GS_TRAINED_FLAGS][GS_TRAINED_TEXT];
    bool found;      /* the file could be read; then also what is no flag: */
    gs_settings set; /* numbers alone, no text of it lives */
    fth_err err;     /* why it could not */
} gs_trained;

/* `flags` of the command, each as "flag" or "flag=key" where the key of `train` has another one,
 * blanks between them. Without a settings file in the folder, or where MODEL is a file, it answers
 * as the command does; one that cannot be read is told by `err` of it, and is no failure. */
fth_status gs_trained_open(gs_trained *t, fth_mem *mem, const char *model, const char *flags,
                           fth_flag_value_fn *value, void *user, fth_err *err);
const char *gs_trained_value(void *trained, const char *flag);
/* One line: which flags are from which file; nothing where none is. */
void gs_trained_tell(const gs_trained *t, FILE *notes);

#endif
