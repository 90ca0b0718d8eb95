#include <algorithm>
#include <cctype>

#include "base/strings.hpp"
#include "config/section.hpp"
#include "config/validate.hpp"

namespace remote::config {
namespace {

const std::vector<std::pair<std::string, PythonManager>>& managers() {
  static const std::vector<std::pair<std::string, PythonManager>> table = {{"conda", PythonManager::conda},
                                                                           {"venv", PythonManager::venv},
                                                                           {"uv", PythonManager::uv},
                                                                           {"system", PythonManager::system}};
  return table;
}

PythonManager read_manager(const Section& section, const Found<std::string>& found) {
  std::vector<std::string> names;
  for (const auto& [name, manager] : managers()) {
    if (name == found.value) {
      return manager;
    }
    names.push_back(name);
  }
  throw section.error(
      found.mark, "'manager' must be one of " + join(names, ", ") + ", not '" + printable(found.value) + "'",
      did_you_mean(found.value, names));
}

std::string read_version(const Section& section, const Found<std::string>& found) {
  const std::string& version = found.value;
  const bool plain = version.size() <= 32 && std::isdigit(static_cast<unsigned char>(version[0])) != 0 &&
                     std::all_of(version.begin(), version.end(),
                                 [](unsigned char c) { return std::isalnum(c) != 0 || c == '.'; });
  if (!plain) {
    throw section.error(found.mark,
                        "'version' must be a version such as 3.11, not '" + printable(version) + "'");
  }
  return version;
}

// A value that becomes an argument of pip, conda or venv. Rejects anything that could be read as an option.
std::string argument(const Section& section, const std::string& key, const Found<std::string>& found) {
  const bool control =
      std::any_of(found.value.begin(), found.value.end(), [](unsigned char c) { return c < 0x20; });
  if (found.value[0] == '-' || control) {
    throw section.unfit(key, found, control ? "it has a control character" : "it begins with '-'");
  }
  return found.value;
}

// A path whose `bin` is added to PATH.
std::string path_argument(const Section& section, const std::string& key, const Found<std::string>& found) {
  std::string path = argument(section, key, found);
  if (path.find(':') != std::string::npos) {
    throw section.unfit(key, found, "it has a ':', which separates the folders of PATH");
  }
  return path;
}

// The folder of an existing installation on the servers.
std::string read_conda(const Section& section, const Found<std::string>& found, const Python& python) {
  std::string path = path_argument(section, "conda", found);
  while (path.size() > 1 && path.ends_with('/')) {
    path.pop_back();
  }
  if (!path.starts_with('/') && !path.starts_with("~/")) {
    throw section.unfit("conda", found,
                        "give the folder of an installation on the servers, such as /opt/conda");
  }
  if (path.ends_with("/bin/conda")) {
    path.resize(path.size() - std::string_view("/bin/conda").size());
  }
  if (python.manager != PythonManager::conda) {
    throw section.error(found.mark, "'conda' does not work with 'manager: " + to_string(python.manager) + "'",
                        "remove one of the two");
  }
  return path;
}

std::map<std::string, std::string> read_sha256(const Section& section, Warnings& warnings) {
  std::map<std::string, std::string> sums;
  const YamlNode* node = section.node("miniconda_sha256");
  if (node == nullptr) {
    return sums;
  }
  if (node->kind != YamlNode::Kind::map) {
    throw section.error(node->mark, "'miniconda_sha256' must be a map of architectures to digests",
                        "write miniconda_sha256: {x86_64: …, aarch64: …}");
  }
  for (const YamlNode::Entry& entry : node->entries) {
    if (entry.key != "x86_64" && entry.key != "aarch64") {
      warnings.add(entry.mark, "unknown architecture '" + printable(entry.key) +
                                   "' of 'miniconda_sha256' is ignored; known are x86_64 and aarch64");
      continue;
    }
    const std::string digest = lower_case(entry.value->text);
    if (entry.value->kind != YamlNode::Kind::scalar || digest.size() != 64 ||
        digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
      throw section.error(entry.value->mark, "a SHA-256 digest has 64 hexadecimal digits");
    }
    sums[entry.key] = digest;
  }
  return sums;
}

std::vector<std::string> arguments(const Section& section, const std::string& key) {
  std::vector<std::string> values;
  for (const auto& found : section.texts(key)) {
    values.push_back(argument(section, key, found));
  }
  return values;
}

}  // namespace

std::string to_string(PythonManager manager) {
  for (const auto& [name, value] : managers()) {
    if (value == manager) {
      return name;
    }
  }
  return "conda";
}

std::optional<std::string> read_prologue(const Section& section) {
  const YamlNode* node = section.node("prologue");
  if (node == nullptr) {
    return std::nullopt;
  }
  std::vector<std::string> lines;
  for (const auto& found : section.texts("prologue")) {
    lines.push_back(found.value);
  }
  return std::string(trim(join(lines, "\n")));
}

Python read_python(const YamlNode& node, const std::string& file, Warnings& warnings) {
  const Section section(node, Level::python, "'python'", file, warnings);
  Python python;
  if (const auto manager = section.text("manager")) {
    python.manager = read_manager(section, *manager);
    python.manager_given = true;
  }
  if (const auto version = section.text("version")) {
    python.version = read_version(section, *version);
  }
  python.system_site_packages = section.boolean("system_site_packages").value_or(false);
  if (const auto conda = section.text("conda")) {
    python.conda = read_conda(section, *conda, python);
  }
  if (const auto environment = section.text("environment")) {
    python.environment = path_argument(section, "environment", *environment);
    if (const auto problem = git_problem(python.environment)) {
      throw section.unfit("environment", *environment, *problem);
    }
  }
  if (const auto url = section.text("miniconda_url")) {
    python.miniconda_url = argument(section, "miniconda_url", *url);
    if (python.miniconda_url.find("://") == std::string::npos) {
      throw section.error(url->mark, "'miniconda_url' must be a URL, not '" + printable(url->value) + "'");
    }
  }
  python.miniconda_sha256 = read_sha256(section, warnings);
  if (lower_case(python.miniconda_url).starts_with("http:") && python.miniconda_sha256.empty()) {
    warnings.add(section.node("miniconda_url")->mark,
                 "downloads over http can be changed on their way; give miniconda_sha256, or use https");
  }
  if (const auto index = section.text("index_url")) {
    python.index_url = argument(section, "index_url", *index);
  }
  python.extra_index_urls = arguments(section, "extra_index_urls");
  for (std::string& url : arguments(section, "extra_index_url")) {  // pip's name for the option
    python.extra_index_urls.push_back(std::move(url));
  }
  python.find_links = arguments(section, "find_links");
  python.constraints = arguments(section, "constraints");
  python.no_index = section.boolean("no_index").value_or(false);
  return python;
}

}  // namespace remote::config
