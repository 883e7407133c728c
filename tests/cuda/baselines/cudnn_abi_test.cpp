// What cudnn/abi.h declares is what cuDNN's header says. Nothing runs: it compiles, or it does not.
#include "cuda/baselines/cudnn/abi.h"

#include <cudnn.h>
#include <gtest/gtest.h>

namespace strobe::cuda::cudnn::abi {
namespace {

template <class Ours>
constexpr bool same(Ours ours, long theirs) {
  return static_cast<long>(ours) == theirs;
}

static_assert(sizeof(Handle) == sizeof(cudnnHandle_t));
static_assert(sizeof(Descriptor) == sizeof(cudnnBackendDescriptor_t));
static_assert(sizeof(Attribute) == sizeof(cudnnBackendAttributeName_t));
static_assert(sizeof(bool) == 1);
static_assert(same(Status::success, CUDNN_STATUS_SUCCESS));

static_assert(same(DataType::fp32, CUDNN_DATA_FLOAT));
static_assert(same(DataType::fp16, CUDNN_DATA_HALF));
static_assert(same(DataType::int32, CUDNN_DATA_INT32));
static_assert(same(DataType::bf16, CUDNN_DATA_BFLOAT16));
static_assert(same(DataType::boolean, CUDNN_DATA_BOOLEAN));

using Kind = DescriptorKind;
static_assert(same(Kind::pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
static_assert(same(Kind::engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
static_assert(same(Kind::engine_config, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
static_assert(same(Kind::heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
static_assert(same(Kind::execution_plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
static_assert(same(Kind::pointwise_operation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
static_assert(same(Kind::operation_graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
static_assert(same(Kind::variant_pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
static_assert(same(Kind::tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
static_assert(same(Kind::matmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR));
static_assert(same(Kind::matmul_operation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR));
static_assert(same(Kind::reduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR));
static_assert(same(Kind::reduction_operation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR));
static_assert(same(Kind::reshape_operation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR));

static_assert(same(Attribute::pointwise_mode, CUDNN_ATTR_POINTWISE_MODE));
static_assert(same(Attribute::pointwise_precision, CUDNN_ATTR_POINTWISE_MATH_PREC));
static_assert(same(Attribute::pointwise_axis, CUDNN_ATTR_POINTWISE_AXIS));
static_assert(same(Attribute::heuristics_mode, CUDNN_ATTR_ENGINEHEUR_MODE));
static_assert(same(Attribute::heuristics_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
static_assert(same(Attribute::heuristics_results, CUDNN_ATTR_ENGINEHEUR_RESULTS));
static_assert(same(Attribute::engine_config_engine, CUDNN_ATTR_ENGINECFG_ENGINE));
static_assert(same(Attribute::plan_engine_config, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
static_assert(same(Attribute::plan_workspace_size, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
static_assert(same(Attribute::pointwise_operation_descriptor,
                   CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR));
static_assert(same(Attribute::pointwise_operation_x, CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
static_assert(same(Attribute::pointwise_operation_b, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
static_assert(same(Attribute::pointwise_operation_y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
static_assert(same(Attribute::pointwise_operation_t, CUDNN_ATTR_OPERATION_POINTWISE_TDESC));
static_assert(same(Attribute::graph_operations, CUDNN_ATTR_OPERATIONGRAPH_OPS));
static_assert(same(Attribute::tensor_alignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT));
static_assert(same(Attribute::tensor_type, CUDNN_ATTR_TENSOR_DATA_TYPE));
static_assert(same(Attribute::tensor_sizes, CUDNN_ATTR_TENSOR_DIMENSIONS));
static_assert(same(Attribute::tensor_strides, CUDNN_ATTR_TENSOR_STRIDES));
static_assert(same(Attribute::tensor_id, CUDNN_ATTR_TENSOR_UNIQUE_ID));
static_assert(same(Attribute::tensor_is_virtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL));
static_assert(same(Attribute::tensor_is_by_value, CUDNN_ATTR_TENSOR_IS_BY_VALUE));
static_assert(same(Attribute::variant_ids, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS));
static_assert(same(Attribute::variant_pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS));
static_assert(same(Attribute::variant_workspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
static_assert(same(Attribute::engine_global_index, CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
static_assert(same(Attribute::matmul_precision, CUDNN_ATTR_MATMUL_COMP_TYPE));
static_assert(same(Attribute::matmul_operation_a, CUDNN_ATTR_OPERATION_MATMUL_ADESC));
static_assert(same(Attribute::matmul_operation_b, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
static_assert(same(Attribute::matmul_operation_c, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
static_assert(same(Attribute::matmul_operation_descriptor, CUDNN_ATTR_OPERATION_MATMUL_DESC));
static_assert(same(Attribute::reduction_operator, CUDNN_ATTR_REDUCTION_OPERATOR));
static_assert(same(Attribute::reduction_precision, CUDNN_ATTR_REDUCTION_COMP_TYPE));
static_assert(same(Attribute::reduction_operation_x, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
static_assert(same(Attribute::reduction_operation_y, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
static_assert(same(Attribute::reduction_operation_descriptor, CUDNN_ATTR_OPERATION_REDUCTION_DESC));
static_assert(same(Attribute::reshape_operation_x, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
static_assert(same(Attribute::reshape_operation_y, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));

// Later headers mark these as deprecated.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static_assert(same(Attribute::plan_handle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE));
static_assert(same(Attribute::graph_handle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE));
#pragma GCC diagnostic pop

static_assert(same(ElementType::handle, CUDNN_TYPE_HANDLE));
static_assert(same(ElementType::data_type, CUDNN_TYPE_DATA_TYPE));
static_assert(same(ElementType::boolean, CUDNN_TYPE_BOOLEAN));
static_assert(same(ElementType::int64, CUDNN_TYPE_INT64));
static_assert(same(ElementType::pointer, CUDNN_TYPE_VOID_PTR));
static_assert(same(ElementType::heuristics_mode, CUDNN_TYPE_HEUR_MODE));
static_assert(same(ElementType::pointwise_mode, CUDNN_TYPE_POINTWISE_MODE));
static_assert(same(ElementType::descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR));
static_assert(same(ElementType::reduction_operator, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE));
static_assert(same(ElementType::character, CUDNN_TYPE_CHAR));

static_assert(same(PointwiseMode::add, CUDNN_POINTWISE_ADD));
static_assert(same(PointwiseMode::multiply, CUDNN_POINTWISE_MUL));
static_assert(same(PointwiseMode::divide, CUDNN_POINTWISE_DIV));
static_assert(same(PointwiseMode::subtract, CUDNN_POINTWISE_SUB));
static_assert(same(PointwiseMode::exponential, CUDNN_POINTWISE_EXP));
static_assert(same(PointwiseMode::logarithm, CUDNN_POINTWISE_LOG));
static_assert(same(PointwiseMode::identity, CUDNN_POINTWISE_IDENTITY));
static_assert(same(PointwiseMode::greater_or_equal, CUDNN_POINTWISE_CMP_GE));
static_assert(same(PointwiseMode::index, CUDNN_POINTWISE_GEN_INDEX));
static_assert(same(PointwiseMode::select, CUDNN_POINTWISE_BINARY_SELECT));
static_assert(same(ReductionOperator::add, CUDNN_REDUCE_TENSOR_ADD));
static_assert(same(ReductionOperator::maximum, CUDNN_REDUCE_TENSOR_MAX));
static_assert(same(HeuristicsMode::fallback, CUDNN_HEUR_MODE_FALLBACK));
static_assert(same(HeuristicsMode::a, CUDNN_HEUR_MODE_A));

#if CUDNN_VERSION >= 90800  // the first that plans for a device that is not there
static_assert(same(Kind::device_properties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
static_assert(same(Attribute::heuristics_device, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP));
static_assert(same(Attribute::plan_device, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP));
static_assert(same(Attribute::device_json, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION));
#endif

TEST(CudnnAbi, IsThatOfTheHeader) {}

}  // namespace
}  // namespace strobe::cuda::cudnn::abi
