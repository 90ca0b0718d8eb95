#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace remote::config {

// `history: {columns: […]}` in a project's configs.yaml: names of numbers, lowercase. Throws Error (usage)
// with file, line and column.
std::vector<std::string> history_columns(const std::filesystem::path& project);

}  // namespace remote::config
