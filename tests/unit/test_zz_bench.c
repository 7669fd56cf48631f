#include "testing/op_cut.h"
#include <cblas.h>
#include <time.h>
extern const fth_kernel fth__cpu_dot, fth__cpu_cholesky, fth__cpu_solve;
void spotrf_(const char*,const int*,float*,const int*,int*,size_t);
void dpotrf_(const char*,const int*,double*,const int*,int*,size_t);
static double now(void){struct timespec t;clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t);return (double)t.tv_sec+1e-9*(double)t.tv_nsec;}
static fth_tile tile2(void*p,int64_t a,int64_t b){return (fth_tile){.data=p,.extent={a,b},.stride={b,1}};}
static void dot(fth_dtype t,int64_t n,int64_t k){oc_bench b;oc_open(&b);fth_axis(b.g,"m",n);fth_axis(b.g,"n",n);fth_axis(b.g,"k",k);
 const fth_node*nd=oc_node(&b,fth_dot(oc_in(&b,"a",t,"m k"),oc_in(&b,"b",t,"k n"),"k"));
 t_random r=t_random_make(1);void*A=malloc((size_t)oc_bytes(&nd->in[0])),*B=malloc((size_t)oc_bytes(&nd->in[1])),*C=malloc((size_t)oc_bytes(&nd->out[0]));
 oc_fill(&r,&nd->in[0],A);oc_fill(&r,&nd->in[1],B);memset(C,0,(size_t)oc_bytes(&nd->out[0]));
 fth_call call={.node=nd,.first=true,.last=true,.threads=1};call.in[0]=tile2(A,n,k);call.in[1]=tile2(B,k,n);call.out[0]=tile2(C,n,n);
 call.scratch=aligned_alloc(64,(fth__cpu_dot.scratch(&call)/64+1)*64);memset(call.scratch,0,fth__cpu_dot.scratch(&call));
 double rat[15],t1m=1e9,t2m=1e9;int R=15;
 for(int i=0;i<R;i++){double s=now();
  if(t==FTH_F32)cblas_sgemm(CblasRowMajor,CblasNoTrans,CblasNoTrans,(int)n,(int)n,(int)k,1,A,(int)k,B,(int)n,0,C,(int)n);
  else cblas_dgemm(CblasRowMajor,CblasNoTrans,CblasNoTrans,(int)n,(int)n,(int)k,1,A,(int)k,B,(int)n,0,C,(int)n);
  double t1=now()-s;s=now();OK(fth__cpu_dot.run(&call));double t2=now()-s;rat[i]=t1/t2;if(t1<t1m)t1m=t1;if(t2<t2m)t2m=t2;}
 for(int i=0;i<R;i++)for(int j=i+1;j<R;j++)if(rat[j]<rat[i]){double q=rat[i];rat[i]=rat[j];rat[j]=q;}
 printf("dot %s n=%lld k=%lld lib %.4f ours %.4f (%.1f GF) ratio of best %.3f median %.3f lower quartile %.3f\n",fth_dtype_name(t),(long long)n,(long long)k,t1m,t2m,2e-9*(double)(n*n*k)/t2m,t1m/t2m,rat[R/2],rat[R/4]);}
static void chol(fth_dtype t,int64_t n){oc_bench b;oc_open(&b);fth_axis(b.g,"row",n);fth_axis(b.g,"col",n);
 const fth_node*nd=oc_node(&b,fth_cholesky(oc_in(&b,"a",t,"row col"),"row","col"));
 size_t bytes=(size_t)oc_bytes(&nd->in[0]);void*A=malloc(bytes),*C=malloc(bytes),*D=malloc(bytes);t_random r=t_random_make(1);oc_fill(&r,&nd->in[0],A);
 for(int64_t i=0;i<n;i++)if(t==FTH_F32)((float*)A)[i*n+i]=300;else((double*)A)[i*n+i]=300;
 fth_call call={.node=nd,.first=true,.last=true,.threads=1};call.in[0]=tile2(A,n,n);call.out[0]=tile2(C,n,n);
 double rat[15],t1m=1e9,t2m=1e9;int R=15,ni=(int)n,info;
 for(int i=0;i<R;i++){memcpy(D,A,bytes);double s=now();
  if(t==FTH_F32)spotrf_("U",&ni,D,&ni,&info,1);else dpotrf_("U",&ni,D,&ni,&info,1);
  double t1=now()-s;memcpy(C,A,bytes);call.in[0].data=C;s=now();OK(fth__cpu_cholesky.run(&call));double t2=now()-s;rat[i]=t1/t2;if(t1<t1m)t1m=t1;if(t2<t2m)t2m=t2;}
 for(int i=0;i<R;i++)for(int j=i+1;j<R;j++)if(rat[j]<rat[i]){double q=rat[i];rat[i]=rat[j];rat[j]=q;}
 printf("chol %s n=%lld lib %.4f ours %.4f (%.1f GF) ratio of best %.3f median %.3f lower quartile %.3f\n",fth_dtype_name(t),(long long)n,t1m,t2m,1e-9/3*(double)(n*n*n)/t2m,t1m/t2m,rat[R/2],rat[R/4]);}
TEST(bench){dot(FTH_F32,2048,2048);dot(FTH_F64,2048,2048);dot(FTH_F32,1024,8192);chol(FTH_F32,3000);chol(FTH_F64,3000);chol(FTH_F32,1000);}
TEST_MAIN()
