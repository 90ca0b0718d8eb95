#include "servers/shell_text.hpp"

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"

namespace remote::servers {

std::string assign(std::string_view name, std::string_view value) {
  return fmt::format("{}={}\n", name, shell_quote(value));
}

std::string assign_path(std::string_view name, std::string_view path) {
  return fmt::format("{}={}\n", name, remote_path_word(path));
}

std::string export_variable(const std::string& name, std::string_view value) {
  return fmt::format("export {}\n", shell_quote(fmt::format("{}={}", name, value)));
}

std::string source_file(std::string_view file) {
  return fmt::format(". \"$remote_program/{}\"\n", file);
}

}  // namespace remote::servers
