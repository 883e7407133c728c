/* Strobe's C interface, for C and for every language that can call C.
 *
 * Every function that can fail returns a strobe_status and leaves a one-sentence message for the
 * calling thread in strobe_last_error(). Nothing here prints, exits, aborts or throws.
 *
 *     strobe_problem problem;
 *     strobe_problem_init(&problem);
 *     problem.batch = 1, problem.seqlen_q = 128, problem.heads = 8, problem.dim = 64;
 *     strobe_plan* plan;
 *     if (strobe_plan_create(&problem, NULL, 0, &plan) != STROBE_OK) puts(strobe_last_error());
 */
#ifndef STROBE_STROBE_H
#define STROBE_STROBE_H

#include <stddef.h>
#include <stdint.h>

#include "strobe/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum strobe_status {
  STROBE_OK = 0,
  STROBE_INVALID_ARGUMENT = 1,
  STROBE_UNSUPPORTED = 2,
  STROBE_OUT_OF_MEMORY = 3,
  STROBE_INTERNAL = 4
} strobe_status;

typedef enum strobe_dtype {
  STROBE_FP32 = 0,
  STROBE_FP16 = 1,
  STROBE_BF16 = 2,
  STROBE_FP8_E4M3 = 3,
  STROBE_INT8 = 4,
  STROBE_UINT8 = 5,
  STROBE_INT32 = 6
} strobe_dtype;

typedef enum strobe_device { STROBE_CPU = 0, STROBE_CUDA = 1 } strobe_device;
typedef enum strobe_pass { STROBE_FORWARD = 0, STROBE_BACKWARD = 1 } strobe_pass;
typedef enum strobe_layout {
  STROBE_SEPARATE = 0,
  STROBE_KVPACKED = 1,
  STROBE_QKVPACKED = 2
} strobe_layout;

/* Axes a bias has of its own; the others are broadcast. A bias always has keys. */
enum { STROBE_BIAS_BATCH = 1, STROBE_BIAS_HEAD = 2, STROBE_BIAS_QUERY = 4, STROBE_BIAS_KEY = 8 };

/* What is to be computed: the fields of strobe::Problem. Always start from strobe_problem_init. */
typedef struct strobe_problem {
  size_t struct_size; /* set by strobe_problem_init, lets later versions grow the struct */
  int32_t pass;       /* strobe_pass */
  int32_t dtype;      /* strobe_dtype */
  int32_t layout;     /* strobe_layout */
  int32_t causal;     /* 0 or 1 */
  int64_t batch;
  int64_t seqlen_q;
  int64_t seqlen_k; /* -1: as seqlen_q */
  int64_t heads;
  int64_t heads_k; /* -1: as heads */
  int64_t dim;
  int64_t dim_v; /* -1: as dim */
  double scale;  /* NaN: 1/sqrt(dim) */
  int64_t window_left;
  int64_t window_right; /* -1: no limit */
  double softcap;       /* 0: off */
  int32_t alibi;        /* 0 or 1 */
  int32_t sinks;        /* 0 or 1 */
  int32_t bias;         /* 0: none, else STROBE_BIAS_KEY and the other axes it has */
  double dropout;
  uint64_t dropout_seed;
  const int64_t* lengths_q; /* variable length: `batch` entries each, else NULL */
  const int64_t* lengths_k;
} strobe_problem;

enum { STROBE_MAX_RANK = 5 };

/* Memory with a shape; strides count elements. data == NULL: not given. */
typedef struct strobe_tensor {
  void* data;
  int32_t dtype;  /* strobe_dtype */
  int32_t device; /* strobe_device */
  int32_t device_index;
  int32_t rank;
  int64_t shape[STROBE_MAX_RANK];
  int64_t strides[STROBE_MAX_RANK];
} strobe_tensor;

/* The operands of one call: the fields of strobe::Tensors. Start from all zeros. */
typedef struct strobe_tensors {
  strobe_tensor q, k, v, out, lse;
  strobe_tensor bias, sinks, alibi_slopes, cu_seqlens_q, cu_seqlens_k;
  strobe_tensor dout, dq, dk, dv, dbias, dsinks;
} strobe_tensors;

typedef struct strobe_plan strobe_plan;

STROBE_API const char* strobe_version(void);

/* The message of this thread's last failed call; "" if none failed. */
STROBE_API const char* strobe_last_error(void);

STROBE_API void strobe_problem_init(strobe_problem* problem);

/* STROBE_OK if the problem makes sense. */
STROBE_API strobe_status strobe_problem_validate(const strobe_problem* problem);

/* Writes the text form with a final zero into `buffer`, at most `size` bytes, and the bytes a
 * whole one needs into `needed` (may be NULL). Too small a buffer is STROBE_INVALID_ARGUMENT. */
STROBE_API strobe_status strobe_problem_text(const strobe_problem* problem, char* buffer,
                                             size_t size, size_t* needed);

/* Names of the implementations in order of preference, "flash" on the CPU and "cuda:flash" on GPUs;
 * NULL past the last. */
STROBE_API const char* strobe_implementation_name(size_t index);

/* STROBE_OK if the named implementation supports the problem, on the first GPU if it is one for
 * GPUs; STROBE_UNSUPPORTED with what is missing in strobe_last_error() if not. */
STROBE_API strobe_status strobe_supports(const strobe_problem* problem, const char* implementation);

typedef enum strobe_reference {
  STROBE_REFERENCE_AUTOMATIC = 0,
  STROBE_REFERENCE_RUNNING = 1,
  STROBE_REFERENCE_FIXED = 2
} strobe_reference;

/* How a problem is planned: the fields of strobe::PlanOptions, and where. Always start from
 * strobe_plan_options_init. */
typedef struct strobe_plan_options {
  size_t struct_size;    /* set by strobe_plan_options_init, lets later versions grow the struct */
  int32_t device;        /* strobe_device: whose best implementation, where none is named */
  int32_t device_index;  /* which GPU */
  int32_t threads;       /* of the CPU; 0: all */
  int32_t tf32;          /* 0 or 1: fp32 on GPUs may be rounded to TF32 */
  int32_t deterministic; /* 0 or 1: the backward pass on GPUs gives the same bits in every run */
  int32_t reference;     /* strobe_reference */
  const char* variant;   /* NULL: as was tuned, else as usual */
} strobe_plan_options;

STROBE_API void strobe_plan_options_init(strobe_plan_options* options);

/* Plans with the named implementation, or the best one of the options' device if NULL. */
STROBE_API strobe_status strobe_plan_create_with(const strobe_problem* problem,
                                                 const char* implementation,
                                                 const strobe_plan_options* options,
                                                 strobe_plan** plan);

/* The same with no option but the threads. */
STROBE_API strobe_status strobe_plan_create(const strobe_problem* problem,
                                            const char* implementation, int32_t threads,
                                            strobe_plan** plan);
STROBE_API void strobe_plan_destroy(strobe_plan* plan);
STROBE_API size_t strobe_plan_workspace_bytes(const strobe_plan* plan);

/* Name of the implementation and its tuning, one line; lives as long as the plan. */
STROBE_API const char* strobe_plan_description(const strobe_plan* plan);

/* Computes. `workspace` is on the device of the plan, aligned to 64 bytes and at least
 * strobe_plan_workspace_bytes long. On a GPU the call is ordered on `stream`. */
STROBE_API strobe_status strobe_run(const strobe_plan* plan, const strobe_tensors* tensors,
                                    void* workspace, size_t workspace_bytes, void* stream);

/* What an executor is given to call, and an executor: the host program's own threads. It must call
 * call(argument, task) once for every task in [0, tasks), in any order, on any threads, as many at
 * a time as it likes (one is enough), and return when all of them have returned. It may be called
 * by several threads at once. */
typedef void (*strobe_task)(void* argument, int64_t task);
typedef void (*strobe_executor)(void* context, int64_t tasks, strobe_task call, void* argument);

/* From now on the library computes on the executor's threads, or, if it is NULL, on its own again.
 * Calls that have begun keep the executor they began with, so `context` must outlive them. */
STROBE_API void strobe_set_executor(strobe_executor executor, void* context);

#ifdef __cplusplus
}
#endif

#endif
