#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <remote/gpu.hpp>

#include "servers/action.hpp"

// What lib/gpus.sh of src/server answers: the lines of a FactsAnswer that tell of GPUs.

namespace remote::servers {

// What a vendor's program has answered to one question.
struct GpuOutput {
  std::vector<std::string> lines{};
  int code = 0;  // its exit code; 124: it did not answer in time
};
// By the question's name.
using GpuOutputs = std::map<std::string, GpuOutput, std::less<>>;

class GpuAnswer {
 public:
  // Whether a line of this kind is one of tell_gpus.
  static bool takes(std::string_view kind);
  // Takes in one line. Throws Error for one that it does not understand.
  void take(AnswerLine& line);
  // All that came. What a vendor's program has answered otherwise than its documentation says is a GpuTool
  // with the state `failed`; the other programs' GPUs are not harmed. Throws Error for an answer without its
  // end.
  GpuFacts facts() const;

 private:
  GpuOutputs outputs_;
  std::set<std::string, std::less<>> ended_;
  std::map<int, GpuProcess> processes_;
  std::size_t lines_ = 0;
};

}  // namespace remote::servers
