/* python.h - verbs for other languages: what bindings/python calls.
 *
 * A verb works on files; the binding puts arrays into a folder of its own and takes them out again.
 */
#ifndef PTYCHO_PYTHON_PYTHON_H
#define PTYCHO_PYTHON_PYTHON_H

#include <fathom/fathom.h>

FTH_BEGIN_DECLS

/* Run `fathom ptycho VERB WORD...` in this process. `option`: names of flags without dashes (dots
 * as underscores will do) and their values, one after the other, then NULL. What it prints goes to
 * the file `text`. FTH_E_USAGE names the nearest option or verb where one is not known. */
FTH_API FTH_MUST_USE fth_status fth_ptycho_run(fth_context *ctx, const char *verb,
                                               const char *const *word, int n_words,
                                               const char *const *option, const char *text,
                                               fth_err *err);

FTH_END_DECLS
#endif
