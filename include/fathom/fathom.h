/* fathom.h - arrays with named axes, planned before they run, inside a memory budget. */
#ifndef FATHOM_FATHOM_H
#define FATHOM_FATHOM_H

#include <fathom/array.h>
#include <fathom/backend.h>
#include <fathom/base.h>
#include <fathom/config.h>
#include <fathom/files.h>
#include <fathom/graph.h>
#include <fathom/images.h>
#include <fathom/instrument.h>
#include <fathom/io.h>
#include <fathom/isa.h>
#include <fathom/job.h>
#include <fathom/json.h>
#include <fathom/lines.h>
#include <fathom/memory.h>
#include <fathom/monitor.h>
#include <fathom/nd2.h>
#include <fathom/number.h>
#include <fathom/op.h>
#include <fathom/op_check.h>
#include <fathom/ops.h>
#include <fathom/optim.h>
#include <fathom/parquet.h>
#include <fathom/pictures.h>
#include <fathom/plan.h>
#include <fathom/plot.h>
#include <fathom/ranks.h>
#include <fathom/rates.h>
#include <fathom/reader.h>
#include <fathom/stage.h>
#include <fathom/tiff.h>
#include <fathom/trace.h>
#include <fathom/xlsx.h>
#include <fathom/zarr.h>

#endif /* FATHOM_FATHOM_H */
