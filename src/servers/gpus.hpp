#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <remote/gpu.hpp>

#include "servers/action.hpp"

// What src/server/gpus.sh answers. Another script's answer that includes it has a GpuAnswer as a member, and
// hands it the lines that are its own.

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

// How much is asked: `brief` is what changes from second to second, and costs the server two calls of a
// vendor's program.
enum class GpuDetail { brief, full };

// Puts the asking into a script whose answer has a GpuAnswer. The script has set LC_ALL to C.
void add_gpus(Script& script, GpuDetail detail);

// Asks about the GPUs alone.
Action<GpuAnswer> gpu_action(GpuDetail detail);

}  // namespace remote::servers
