#include "cuda/kernels/read_all/read_all.h"

#include "cuda/driver/stream.h"
#include "cuda/gpu.h"

namespace strobe::cuda::read_all {
namespace {

class ReadAll : public test::OnGpuWithCompiler {};

TEST_F(ReadAll, IsMadeWhateverContextIsCurrent) {
  const driver::Stream stream(device());
  const ReadMemory memory(device(), 1 << 16, stream.get());
  {
    const driver::ContextScope scope(device());
    EXPECT_NO_THROW(memory.launch(stream.get()));
  }
  EXPECT_NO_THROW(stream.synchronize());
}

}  // namespace
}  // namespace strobe::cuda::read_all
