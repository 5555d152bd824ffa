// What the rungs are made of.

#include "../../ptx_bf16.cuh"
#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_across.cuh"
#include "../../hopper_early.cuh"
#include "pipeline.cuh"
#include "output_layer.cuh"
#include "forward.cuh"
#include "backward_update.cuh"
