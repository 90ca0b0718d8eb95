#pragma once

#include "config/config.hpp"
#include "config/section.hpp"

// The parts of configs.yaml, one function each. They throw Error with file, line and column.

namespace remote::config {

Server read_server(const YamlNode::Entry& entry, const Config& config, const std::string& file,
                   Warnings& warnings);
Python read_python(const YamlNode& node, const std::string& file, Warnings& warnings);

}  // namespace remote::config
