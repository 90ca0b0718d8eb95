#include "rules/python_version.hpp"

#include <vector>

#include "base/strings.hpp"

namespace remote::rules {

bool is_usable_python(const std::string& version) {
  if (version.empty()) {
    return true;
  }
  const std::vector<std::string> numbers = split(version, '.');
  const int major = remote::parse_number<int>(numbers.front()).value_or(0);
  const int minor = numbers.size() > 1 ? remote::parse_number<int>(numbers[1]).value_or(0) : 0;
  return major > 3 || (major == 3 && minor >= oldest_python_minor);
}

}  // namespace remote::rules
