/* base/processor.h - whose processor this is, for what makes kernels faster or slower and changes
 * no bit; what it can do is in fathom/isa.h.
 */
#ifndef FTH_BASE_PROCESSOR_H
#define FTH_BASE_PROCESSOR_H

#include <fathom/base.h>

FTH_BEGIN_DECLS

bool fth__is_amd(void);

FTH_END_DECLS

#endif
