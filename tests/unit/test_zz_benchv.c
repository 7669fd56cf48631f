#include "testing/op_cut.h"
#include <time.h>
extern const fth_kernel fth__cpu_conv2d;
static double now(void){struct timespec t;clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t);return (double)t.tv_sec+1e-9*(double)t.tv_nsec;}
static void bench(int64_t N,int64_t C,int64_t O,int64_t H,int64_t W,int64_t K){oc_bench b;oc_open(&b);fth_axis(b.g,"b",N);fth_axis(b.g,"c",C);fth_axis(b.g,"y",H);fth_axis(b.g,"x",W);fth_axis(b.g,"o",O);fth_axis(b.g,"ky",K);fth_axis(b.g,"kx",K);
 const fth_conv conv={"y","x","y","x","c","ky","kx",1,1,K/2,K/2};
 const fth_node*nd=oc_node(&b,fth_conv2d(oc_in(&b,"v",FTH_F32,"b c y x"),oc_in(&b,"w",FTH_F32,"o c ky kx"),&conv));
 fth_call call={.node=nd,.first=true,.last=true,.threads=1};
 call.in[0]=(fth_tile){.data=calloc(1,(size_t)oc_bytes(&nd->in[0])),.extent={N,C,H,W},.stride={C*H*W,H*W,W,1}};
 call.in[1]=(fth_tile){.data=calloc(1,(size_t)oc_bytes(&nd->in[1])),.extent={O,C,K,K},.stride={C*K*K,K*K,K,1}};
 call.out[0]=(fth_tile){.data=calloc(1,(size_t)oc_bytes(&nd->out[0])),.extent={N,O,H,W},.stride={O*H*W,H*W,W,1}};
 uint64_t z=fth__cpu_conv2d.scratch(&call);call.scratch=aligned_alloc(64,(z/64+1)*64);memset(call.scratch,0,z);memset(call.out[0].data,0,(size_t)oc_bytes(&nd->out[0]));
 double best=1e9;for(int r=0;r<10;r++){double t=now();OK(fth__cpu_conv2d.run(&call));t=now()-t;if(t<best)best=t;}
 printf("ours N%d C%d O%d %dx%d k%d: %.2f ms %.1f GF scratch %.1f MB\n",(int)N,(int)C,(int)O,(int)H,(int)W,(int)K,best*1e3,2e-9*(double)(N*C*O*H*W*K*K)/best,(double)z*1e-6);}
TEST(bench){bench(4,1,16,256,256,3);bench(4,16,16,256,256,3);bench(4,32,64,128,128,3);bench(4,64,64,128,128,3);bench(4,128,128,32,32,3);bench(4,64,64,128,128,1);bench(1,1,1,1024,1024,15);}
TEST_MAIN()
