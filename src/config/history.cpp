#include "config/history.hpp"

#include "base/beneath.hpp"
#include "base/files.hpp"
#include "base/strings.hpp"
#include "config/section.hpp"

namespace remote::config {

std::vector<std::string> history_columns(const std::filesystem::path& project) {
  const std::string file = (project / ".remote/configs.yaml").string();
  const NodePtr root = read_yaml(decode_text(read_file(file), file), file);
  const YamlNode::Entry* entry = root->find("history");
  std::vector<std::string> columns;
  Warnings warnings(file);
  if (entry != nullptr) {
    for (const auto& column :
         Section(*entry->value, Level::history, "'history'", file, warnings).texts("columns")) {
      columns.push_back(lower_case(column.value));
    }
  }
  return columns;
}

}  // namespace remote::config
