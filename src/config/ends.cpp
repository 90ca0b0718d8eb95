// Settings for the end of a launch: `notify`, `outputs`, `checkpoint` and `spares` in configs.yaml.

#include <algorithm>
#include <filesystem>

#include "base/strings.hpp"
#include "config/section.hpp"
#include "config/validate.hpp"

namespace remote::config {
namespace {

Notify read_notify(const YamlNode& node, const std::string& file, Warnings& warnings) {
  const Section section(node, Level::notify, "'notify'", file, warnings);
  Notify notify;
  const auto url = section.text("url");
  const auto command = section.text("command");
  if (url.has_value() == command.has_value()) {
    throw section.error(section.mark(), "'notify' must have a url or a command, and not both");
  }
  if (command) {
    notify.command = command->value;
    return notify;
  }
  // The URL is a secret, so no message contains it.
  const bool web = url->value.starts_with("https://") || url->value.starts_with("http://");
  if (!web || std::ranges::any_of(url->value, [](unsigned char c) { return c <= 0x20 || c >= 0x7f; })) {
    throw section.error(url->mark, "'url' of 'notify' must begin with https:// or http://, without blanks");
  }
  notify.url = url->value;
  if (const auto shape = section.text("shape")) {
    if (shape->value != "json" && shape->value != "ntfy" && shape->value != "slack") {
      throw section.unfit("shape", *shape, "it must be json, ntfy or slack");
    }
    notify.shape = shape->value;
  }
  return notify;
}

Checkpoint read_checkpoint(const YamlNode& node, const std::string& file, Warnings& warnings) {
  const Section section(node, Level::checkpoint, "'checkpoint'", file, warnings);
  const auto files = section.text("files");
  const auto complete = section.text("complete");
  if (!files || !complete) {
    throw section.error(section.mark(), "'checkpoint' must have 'files' and 'complete'",
                        "write checkpoint: {files: ckpt-*.pt, complete: ckpt-*.done}");
  }
  const std::string& name = files->value;
  if (std::ranges::count(name, '*') != 1 || name.find_first_of("?[") != std::string::npos ||
      name.find('/') < name.size() - 1) {
    throw section.unfit(
        "files", *files,
        "it must be a name with one '*', without its folder: ckpt-*.pt; or that of a folder: step-*/");
  }
  if (const auto problem = inside_problem(complete->value)) {
    throw section.unfit("complete", *complete, *problem);
  }
  if (std::ranges::count(complete->value, '*') > 1) {
    throw section.unfit("complete", *complete, "it can have at most one '*'");
  }
  return {name, complete->value};
}

}  // namespace

void read_ends_of_launches(const Section& top, Config& config, const std::string& file, Warnings& warnings) {
  if (const YamlNode* node = top.node("notify")) {
    config.notify = read_notify(*node, file, warnings);
  }
  for (const auto& output : top.texts("outputs")) {
    if (const auto problem = written_folder_problem(output.value)) {
      throw top.unfit("outputs", output, *problem);
    }
    std::string path = std::filesystem::path(output.value).lexically_normal().string();
    path.erase(path.find_last_not_of('/') + 1);
    config.outputs.push_back(path);
  }
  if (config.launch.pull.value_or(false) && config.outputs.empty()) {
    throw top.error(top.node("launch")->mark, "'pull' of 'launch' needs 'outputs'",
                    "add a line such as outputs: [checkpoints/, metrics.csv]");
  }
  if (const YamlNode* node = top.node("checkpoint")) {
    config.checkpoint = read_checkpoint(*node, file, warnings);
  }
  for (const auto& spare : top.texts("spares")) {
    if (std::ranges::find(config.servers, spare.value, &Server::name) == config.servers.end()) {
      throw top.unfit("spares", spare, "it must be the name of one of `servers`");
    }
    config.spares.push_back(spare.value);
  }
  if (!config.spares.empty() && config.spares.size() >= config.servers.size()) {
    throw top.error(top.node("spares")->mark, "'spares' leaves no server for the ranks");
  }
}

}  // namespace remote::config
