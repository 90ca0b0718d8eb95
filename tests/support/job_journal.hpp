#pragma once

#include <filesystem>
#include <string>

#include "base/files.hpp"

// The journal in a job's folder on a server, as text.

namespace remote::test {

inline std::string read_journal(const std::filesystem::path& job_folder) {
  return read_file_if_there(job_folder / "journal.jsonl").value_or("");
}

inline bool has_ended(const std::filesystem::path& job_folder) {
  const std::string journal = read_journal(job_folder);
  return journal.find("ended\",\"end\":") != std::string::npos ||
         journal.find("\"kind\":\"never_starts\"") != std::string::npos;
}

// A journal line for the end of a job with this exit code.
inline std::string format_end(int code, const std::string& at = "1700000000000") {
  return "{\"kind\":\"ended\",\"end\":{\"how\":{\"code\":" + std::to_string(code) + ",\"signal\":0}" +
         (at.empty() ? "" : ",\"at\":" + at) + ",\"by\":\"supervisor\",\"node\":\"\"}}\n";
}

}  // namespace remote::test
