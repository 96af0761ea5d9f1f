package main

import (
	"log"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// Features that v1.37 has on from the start (kubernetes.io's table of them), and that the version asked here has not.
var on = map[string]bool{
	"ClusterTrustBundle":                   true,
	"ClusterTrustBundleProjection":         true,
	"DRADeviceTaintRules":                  true,
	"HPAScaleToZero":                       true,
	"MaxUnavailableStatefulSet":            true,
	"PersistentVolumeClaimUnusedSinceTime": true,
	"PodCertificateRequest":                true,
	"VolumeLimitScaling":                   true,
}

func openGates() {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(on); err != nil {
		log.Fatal(err)
	}
}
