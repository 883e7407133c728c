/* The same sum as consumer.cpp, through the C interface. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strobe/strobe.h>

static strobe_tensor row_of(float* data, int64_t count) {
  strobe_tensor tensor = {.data = data, .dtype = STROBE_FP32, .device = STROBE_CPU, .rank = 4};
  for (int axis = 0; axis < 4; ++axis) tensor.shape[axis] = tensor.strides[axis] = 1;
  tensor.shape[1] = count; /* [1, count, 1, 1] */
  tensor.strides[0] = count;
  return tensor;
}

static int failed(strobe_status status) {
  if (status != STROBE_OK) fprintf(stderr, "strobe: %s\n", strobe_last_error());
  return status != STROBE_OK;
}

int main(void) {
  float q[] = {1}, k[] = {0, logf(3)}, v[] = {1, 5}, out[] = {0};

  strobe_problem problem;
  strobe_problem_init(&problem);
  problem.dtype = STROBE_FP32;
  problem.seqlen_q = 1;
  problem.seqlen_k = 2;
  problem.dim = 1;
  strobe_plan* plan;
  if (failed(strobe_plan_create(&problem, NULL, 1, &plan))) return 1;

  strobe_tensors tensors = {
      .q = row_of(q, 1), .k = row_of(k, 2), .v = row_of(v, 2), .out = row_of(out, 1)};
  size_t bytes = (strobe_plan_workspace_bytes(plan) + 63) / 64 * 64;
  void* workspace = bytes > 0 ? aligned_alloc(64, bytes) : NULL;
  if (failed(strobe_run(plan, &tensors, workspace, bytes, NULL))) return 1;
  printf("%.6f, expected 4, by %s\n", out[0], strobe_plan_description(plan));
  free(workspace);
  strobe_plan_destroy(plan);
  return fabsf(out[0] - 4) < 1e-5F ? 0 : 1;
}
