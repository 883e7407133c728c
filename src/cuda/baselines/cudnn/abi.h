#pragma once

#include <cstddef>
#include <cstdint>

// What is used of the interface of cuDNN 9, declared here so that it need not be installed to
// build. The tests hold it against cudnn_graph.h where there is one.
namespace strobe::cuda::cudnn::abi {

enum class Status : int { success = 0 };

using Handle = struct CudnnHandleObject*;
using Descriptor = struct DescriptorObject*;  // void* there, and passed alike

enum class DataType : int { fp32 = 0, fp16 = 2, int32 = 4, bf16 = 9, boolean = 11 };

enum class DescriptorKind : int {
  pointwise = 0,
  engine = 2,
  engine_config = 3,
  heuristics = 4,
  execution_plan = 5,
  pointwise_operation = 13,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  matmul_operation = 19,
  reduction = 21,
  reduction_operation = 22,
  reshape_operation = 31,
  device_properties = 38,
};

enum class Attribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  pointwise_axis = 9,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  heuristics_device = 204,
  engine_config_engine = 300,
  plan_handle = 400,
  plan_engine_config = 401,
  plan_workspace_size = 402,
  plan_device = 407,
  pointwise_operation_descriptor = 750,
  pointwise_operation_x = 751,
  pointwise_operation_b = 752,
  pointwise_operation_y = 753,
  pointwise_operation_t = 758,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_sizes = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  variant_ids = 1000,
  variant_pointers = 1001,
  variant_workspace = 1003,
  engine_global_index = 1301,
  matmul_precision = 1500,
  matmul_operation_a = 1520,
  matmul_operation_b = 1521,
  matmul_operation_c = 1522,
  matmul_operation_descriptor = 1523,
  reduction_operator = 1600,
  reduction_precision = 1601,
  reduction_operation_x = 1610,
  reduction_operation_y = 1611,
  reduction_operation_descriptor = 1612,
  reshape_operation_x = 2200,
  reshape_operation_y = 2201,
  device_json = 2702,
};

/// The type of an attribute's elements.
enum class ElementType : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  pointer = 6,
  heuristics_mode = 8,
  pointwise_mode = 14,
  descriptor = 15,
  reduction_operator = 18,
  character = 24,
};

enum class PointwiseMode : int {
  add = 0,
  multiply = 1,
  divide = 6,
  subtract = 9,
  exponential = 13,
  logarithm = 15,
  identity = 21,
  greater_or_equal = 303,
  index = 501,
  select = 601,
};

enum class ReductionOperator : int { add = 0, maximum = 3 };
enum class HeuristicsMode : int { fallback = 2, a = 3 };

}  // namespace strobe::cuda::cudnn::abi
