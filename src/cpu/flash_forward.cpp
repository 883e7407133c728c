#include "cpu/flash.h"
#include "cpu/schedule.h"

namespace strobe::cpu {

void forward(const FlashCall& call) {
  const Problem& problem = call.problem();
  for_each_block(
      problem.batch, problem.heads, problem.seqlen_q, kQueryBlock, call.flash().threads,
      [&](std::int64_t sequence) { return call.length_q(sequence); },
      [&](std::int64_t sequence, std::int64_t head, std::int64_t begin, std::int64_t end,
          int thread) {
        call.flash().kernels->forward(call.task(sequence, head), begin, end, call.scratch(thread));
      });
}

}  // namespace strobe::cpu
