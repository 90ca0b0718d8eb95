#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace remote {

// The line without the label "[rank3]:", which torch prints before tracebacks and log lines.
std::string_view without_rank_label(std::string_view line);

// Whether it is a line of torch's C++ log, such as "[rank0]:[W1126 16:05:40.816896340 File.cpp:1575] text".
bool is_torch_log(std::string_view line);

// Whether it is a line like "host:4242:4250 [0] NCCL INFO Channel 00/02 : 0 1".
bool is_nccl_log(std::string_view line);

// Whether it is a line like "lib/x.py:12: UserWarning: text", or the line of code below it: "
// warnings.warn(".
bool is_python_warning(std::string_view line);

// Whether the line belongs to an error of CUDA or torch's C++ code, and not to a traceback.
bool is_cuda_error(std::string_view line);

// The last `count` of the lines in stderr that show why a process failed. Skips consequences of the failure:
// C++ stack frames, the output of an abort after a Python traceback, and a warning that the process group was
// not destroyed. Keeps only the first line of failed assertions in CUDA kernels.
std::vector<std::string> find_failure_lines(const std::vector<std::string>& lines, std::size_t count);

}  // namespace remote
