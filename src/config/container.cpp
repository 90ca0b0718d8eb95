// `container:` in configs.yaml: the container that jobs run in.

#include "config/container.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "config/section.hpp"

namespace remote::config {
namespace {

std::optional<std::string> engine_problem(const std::string& text) {
  if (parse_container_engine(text)) {
    return std::nullopt;
  }
  return text == "singularity" ? "write apptainer, which is its name today"
                               : "it must be docker, podman or apptainer";
}

std::optional<std::string> pull_problem(const std::string& text) {
  return parse_image_pull(text) ? std::nullopt
                                : std::optional<std::string>("it must be missing, always or never");
}

bool has_control_sign(const std::string& text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::optional<std::string> workdir_problem(const std::string& text) {
  if (has_control_sign(text)) {
    return "it has a control character";
  }
  return text.starts_with('-') ? std::optional<std::string>("it begins with '-'") : std::nullopt;
}

}  // namespace

std::optional<std::string> image_problem(const std::string& text) {
  if (text.empty() || text.starts_with('-')) {
    return "an image has a name, which does not begin with '-'";
  }
  if (text.size() > 1000 || has_control_sign(text) || text.find(' ') != std::string::npos) {
    return "an image's name has no blanks and no control characters, and 1000 characters at most";
  }
  return std::nullopt;
}

std::optional<Container> read_container(const Section& parent, const std::optional<Container>& base,
                                        const std::string& file, Warnings& warnings) {
  const YamlNode* node = parent.node("container");
  if (node == nullptr) {
    return base;
  }
  if (node->kind == YamlNode::Kind::scalar && node->text == "none") {
    return std::nullopt;  // none on this server
  }
  const Section section(*node, Level::container, "'container'", file, warnings);
  Container container = base.value_or(Container());
  if (const auto engine = section.checked("engine", engine_problem)) {
    container.engine = parse_container_engine(*engine);
  }
  container.image = section.checked("image", image_problem).value_or(container.image);
  container.workdir = section.checked("workdir", workdir_problem).value_or(container.workdir);
  if (const auto pull = section.checked("pull", pull_problem)) {
    container.pull = *parse_image_pull(*pull);
  }
  if (section.node("args") != nullptr) {
    container.args.clear();
    for (const auto& found : section.texts("args")) {
      container.args.push_back(found.value);
    }
  }
  return container;
}

}  // namespace remote::config
