#include "testing/op_cut.h"
#include <cblas.h>
#include <time.h>
extern const fth_kernel fth__cpu_dot;
static double now(void){struct timespec t;clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t);return (double)t.tv_sec+1e-9*(double)t.tv_nsec;}
static void bench(const char*a,const char*bx,int64_t m,int64_t n,int64_t k){oc_bench b;oc_open(&b);fth_axis(b.g,"m",m);fth_axis(b.g,"n",n);fth_axis(b.g,"k",k);
 const fth_node*nd=oc_node(&b,fth_dot(oc_in(&b,"a",FTH_F32,a),oc_in(&b,"b",FTH_F32,bx),"k"));
 fth_call call={.node=nd,.first=true,.last=true,.threads=1};
 for(int i=0;i<3;i++){const fth_desc*d=i<2?&nd->in[i]:&nd->out[0];fth_tile*t=i<2?&call.in[i]:&call.out[0];int64_t s=1;for(int q=d->n_axes-1;q>=0;q--){t->extent[q]=d->size[q];t->stride[q]=s;s*=d->size[q];}t->data=calloc(1,(size_t)oc_bytes(d)+64);memset(t->data,0,(size_t)oc_bytes(d));}
 uint64_t z=fth__cpu_dot.scratch(&call);call.scratch=aligned_alloc(64,(z/64+1)*64);memset(call.scratch,0,z);
 double best=1e9;for(int r=0;r<10;r++){double t=now();OK(fth__cpu_dot.run(&call));t=now()-t;if(t<best)best=t;}
 double by=4e-9*(double)(m*k);printf("dot %s . %s m=%d n=%d k=%d: %.3f ms, %.1f GB/s of the large operand\n",a,bx,(int)m,(int)n,(int)k,best*1e3,by/best);
 if(strlen(bx)==1){best=1e9;for(int r=0;r<10;r++){double t=now();if(a[0]=='m')cblas_sgemv(CblasRowMajor,CblasNoTrans,(int)m,(int)k,1,call.in[0].data,(int)k,call.in[1].data,1,0,call.out[0].data,1);else cblas_sgemv(CblasRowMajor,CblasTrans,(int)k,(int)m,1,call.in[0].data,(int)m,call.in[1].data,1,0,call.out[0].data,1);t=now()-t;if(t<best)best=t;}printf("   gemv %.3f ms\n",best*1e3);}}
TEST(bench){bench("m k","k",4096,1,4096);bench("k m","k",4096,1,4096);bench("m k","k n",4096,8,4096);}
TEST_MAIN()
